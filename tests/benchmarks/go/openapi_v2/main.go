// Prints the definitions that apiextensions-apiserver publishes in OpenAPI v2: CustomResourceDefinitions as JSON,
// one on each line of standard input; for each served version one {"name", "version", "definitions"} on a line.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := json.Unmarshal(lines.Bytes(), &crd); err != nil {
			fmt.Fprintln(os.Stderr, err)
			continue
		}
		for _, version := range crd.Spec.Versions {
			if !version.Served {
				continue
			}
			swagger, err := builder.BuildOpenAPIV2(&crd, version.Name, builder.Options{V2: true, IncludeSelectableFields: true})
			if err != nil {
				fmt.Fprintln(os.Stderr, crd.Name, version.Name, err)
				continue
			}
			out, _ := json.Marshal(map[string]interface{}{"name": crd.Name, "version": version.Name, "definitions": swagger.Definitions, "paths": len(swagger.Paths.Paths)})
			fmt.Println(string(out))
		}
	}
}
