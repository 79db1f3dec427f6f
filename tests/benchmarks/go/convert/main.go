// Convert reads Swagger 2.0 documents (one path per argument after the number of rounds), turns each into
// OpenAPI v3 JSON with kube-openapi's openapiconv, and prints the CPU nanoseconds of each round, as JSON.
// Without arguments it answers vectors of the task "convert" (vectors/README.md).
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"k8s.io/kube-openapi/pkg/openapiconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

func main() {
	if len(os.Args) == 1 {
		answer()
		return
	}
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: convert ROUNDS FILE...")
		os.Exit(2)
	}
	rounds, _ := strconv.Atoi(os.Args[1])
	times := map[string][]int64{}
	for _, path := range os.Args[2:] {
		data, err := os.ReadFile(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		for round := 0; round < rounds; round++ {
			runtime.GC()
			start := cpu()
			if _, err := convert(data); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			times[path] = append(times[path], cpu()-start)
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(times)
}

func convert(data []byte) ([]byte, error) {
	var swagger spec.Swagger
	if err := swagger.UnmarshalJSON(data); err != nil {
		return nil, err
	}
	made := openapiconv.ConvertV2ToV3(&swagger)
	if made.Components != nil && len(made.Components.Schemas) == 0 && len(made.Components.SecuritySchemes) == 0 {
		made.Components = nil
	}
	return json.Marshal(made)
}

func answer() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		var asked struct {
			ID    string `json:"id"`
			Task  string `json:"task"`
			Input struct {
				Document json.RawMessage `json:"document"`
			} `json:"input"`
		}
		told := map[string]any{}
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if asked.Task != "convert" {
			told["skipped"] = "it converts alone"
		} else if output, err := convert(asked.Input.Document); err != nil {
			told["verdict"], told["errors"] = "invalid", []string{err.Error()}
		} else {
			told["output"] = json.RawMessage(output)
		}
		told["id"] = asked.ID
		_ = json.NewEncoder(os.Stdout).Encode(told)
	}
}

func cpu() int64 {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return usage.Utime.Nano() + usage.Stime.Nano()
}
