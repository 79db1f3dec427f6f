// Writes Go's categories and scripts of Unicode: by name the code points at which a class begins and ends in
// turn, each as its distance from the one before it. For converters/specmux_converters/go/unicode_classes.json.
package main

import (
	"encoding/json"
	"maps"
	"os"
	"unicode"
)

func edges(table *unicode.RangeTable) []rune {
	var found []rune
	last := rune(0)
	is := false
	for at := rune(0); at <= unicode.MaxRune+1; at++ {
		if in := at <= unicode.MaxRune && unicode.Is(table, at); in != is {
			found, last, is = append(found, at-last), at, in
		}
	}
	return found
}

func main() {
	classes := map[string][]rune{}
	tables := maps.Clone(unicode.Scripts)
	maps.Copy(tables, unicode.Categories)
	for name, table := range tables {
		// A category of one letter is the union of those that begin with it.
		if len(name) > 1 && name != "LC" {
			classes[name] = edges(table)
		}
	}
	data := map[string]any{"version": unicode.Version, "classes": classes, "aliases": unicode.CategoryAliases}
	if err := json.NewEncoder(os.Stdout).Encode(data); err != nil {
		panic(err)
	}
}
