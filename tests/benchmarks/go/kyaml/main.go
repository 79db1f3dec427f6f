// Answers with the KYAML of YAML: one JSON string on each line of standard input, one on each line of output.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml/kyaml"
)

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 1<<28)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var text string
		var written bytes.Buffer
		err := json.Unmarshal(in.Bytes(), &text)
		if err == nil {
			err = (&kyaml.Encoder{}).FromYAML(strings.NewReader(text), &written)
		}
		if err == nil {
			err = out.Encode(written.String())
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
