// Answers what apiextensions-apiserver makes of rules: one JSON object on each line of standard input,
// {"schema": openAPIV3Schema, "object": {...}, "old": {...}}, one answer on each line of standard output. Without an
// object only the expressions are answered: faults and estimated costs, by place.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	kjson "sigs.k8s.io/json"
)

type question struct {
	Schema json.RawMessage `json:"schema"`
	Object json.RawMessage `json:"object"`
	Old    json.RawMessage `json:"old"`
}

type expression struct {
	Place        string `json:"place"`
	Rule         string `json:"rule"`
	Fault        string `json:"fault,omitempty"`
	MessageFault string `json:"messageFault,omitempty"`
	Cost         uint64 `json:"cost"`
	MessageCost  uint64 `json:"messageCost,omitempty"`
	Cardinality  uint64 `json:"cardinality"`
}

type answer struct {
	Refused     string       `json:"refused,omitempty"`
	Expressions []expression `json:"expressions,omitempty"`
	Rules       []string     `json:"rules,omitempty"`
	Spent       int64        `json:"spent,omitempty"`
}

func (a *answer) compile(place string, s *structural.Structural, declared *apiservercel.DeclType) {
	if s == nil || declared == nil {
		return
	}
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	results, err := cel.Compile(s, declared, celconfig.PerCallLimit, base, cel.StoredExpressionsEnvLoader())
	if err != nil {
		a.Expressions = append(a.Expressions, expression{Place: place, Fault: err.Error()})
	}
	for i, result := range results {
		found := expression{
			Place: place, Rule: s.XValidations[i].Rule, Cost: result.MaxCost,
			MessageCost: result.MessageExpressionMaxCost, Cardinality: result.MaxCardinality,
		}
		if result.Error != nil {
			found.Fault = result.Error.Detail
		}
		if result.MessageExpressionError != nil {
			found.MessageFault = result.MessageExpressionError.Detail
		}
		a.Expressions = append(a.Expressions, found)
	}
	a.compile(place+"[*]", s.Items, declared.ElemType)
	if s.AdditionalProperties != nil {
		a.compile(place+"[*]", s.AdditionalProperties.Structural, declared.ElemType)
	}
	names := make([]string, 0, len(s.Properties))
	for name := range s.Properties {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		inner := s.Properties[name]
		if escaped, ok := apiservercel.Escape(name); ok {
			if field, ok := declared.Fields[escaped]; ok {
				a.compile(place+"."+name, &inner, field.Type)
			}
		}
	}
}

func read(data []byte, s *structural.Structural) (map[string]interface{}, error) {
	if len(data) == 0 {
		return nil, nil
	}
	object := map[string]interface{}{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &object); err != nil {
		return nil, err
	}
	pruning.Prune(object, s, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s)
	defaulting.Default(object, s)
	return object, nil
}

func ask(line []byte) (a answer) {
	defer func() {
		if found := recover(); found != nil {
			a = answer{Refused: fmt.Sprint("panic: ", found)}
		}
	}()
	var q question
	if err := json.Unmarshal(line, &q); err != nil {
		return answer{Refused: err.Error()}
	}
	var external apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal(q.Schema, &external); err != nil {
		return answer{Refused: err.Error()}
	}
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&external, &internal, nil); err != nil {
		return answer{Refused: err.Error()}
	}
	s, err := structural.NewStructural(&internal)
	if err != nil {
		return answer{Refused: err.Error()}
	}
	a.compile("", s, model.SchemaDeclType(s, true))
	object, err := read(q.Object, s)
	if err != nil {
		return answer{Refused: err.Error()}
	}
	rules := cel.NewValidator(s, true, celconfig.PerCallLimit)
	if object == nil || rules == nil {
		return a
	}
	old, err := read(q.Old, s)
	if err != nil {
		return answer{Refused: err.Error()}
	}
	var before interface{}
	if old != nil {
		before = old
	}
	errs, left := rules.Validate(context.Background(), nil, s, object, before, celconfig.RuntimeCELCostBudget)
	a.Spent = celconfig.RuntimeCELCostBudget - left
	for _, err := range errs {
		a.Rules = append(a.Rules, err.Error())
	}
	sort.Strings(a.Rules)
	return a
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 1<<28)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		if err := out.Encode(ask(in.Bytes())); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
