// Answers with what apimachinery says of metadata: one ObjectMeta as JSON on each line of standard input, one
// JSON list of texts on each line of standard output. Namespaced, names are DNS subdomains, as for custom
// resources. "go get k8s.io/apimachinery@v0.34.4" makes it that of another release.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for lines.Scan() {
		var meta metav1.ObjectMeta
		if err := json.Unmarshal(lines.Bytes(), &meta); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		texts := []string{}
		for _, fault := range validation.ValidateObjectMeta(&meta, true, validation.NameIsDNSSubdomain, field.NewPath("metadata")) {
			texts = append(texts, fault.Error())
		}
		out.Encode(texts)
	}
}
