// Sums conditions as core Cluster API does: for each line of JSON on its input, a line with the summary.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
)

type question struct {
	Conditions []metav1.Condition `json:"conditions"`
	Types      []string           `json:"types"`
	Negative   []string           `json:"negative"`
}

// GetConditions makes a question an object of the library.
func (q *question) GetConditions() []metav1.Condition {
	return q.Conditions
}

type answer struct {
	Status  metav1.ConditionStatus `json:"status"`
	Reason  string                 `json:"reason"`
	Message string                 `json:"message"`
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
		var q question
		if err := input.Decode(&q); err != nil {
			return err
		}
		strategy := conditions.DefaultMergeStrategy(
			conditions.GetPriorityFunc(conditions.GetDefaultMergePriorityFunc(q.Negative...)),
			conditions.ComputeReasonFunc(
				conditions.GetDefaultComputeMergeReasonFunc("NotReady", "ReadyUnknown", "Ready")),
		)
		summary, err := conditions.NewSummaryCondition(&q, "Ready",
			conditions.ForConditionTypes(q.Types),
			conditions.NegativePolarityConditionTypes(q.Negative),
			conditions.CustomMergeStrategy{MergeStrategy: strategy},
		)
		if err != nil {
			return err
		}
		if err := lines.Encode(answer{summary.Status, summary.Reason, summary.Message}); err != nil {
			return err
		}
	}
	return output.Flush()
}
