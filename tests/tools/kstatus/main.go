// Says what tools that apply objects and wait, such as Flux, make of objects: for each line of JSON on its input, the result
// of kstatus, as a line of JSON.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

type answer struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	input := json.NewDecoder(bufio.NewReader(os.Stdin))
	output := bufio.NewWriter(os.Stdout)
	lines := json.NewEncoder(output)
	for input.More() {
		var raw json.RawMessage
		if err := input.Decode(&raw); err != nil {
			return err
		}
		// Numbers are integers, as clients of the API server read them.
		var object unstructured.Unstructured
		if err := object.UnmarshalJSON(raw); err != nil {
			return err
		}
		result, err := status.Compute(&object)
		if err != nil {
			return err
		}
		if err := lines.Encode(answer{result.Status.String(), result.Message}); err != nil {
			return err
		}
	}
	return output.Flush()
}
