// Answers what apiextensions-apiserver says to custom resources: one JSON object on each line of standard input,
// {"schema": openAPIV3Schema, "object": {...}, "old": {...}}, one answer on each line of standard output. With
// "ratchets": true the answer is that to an update, which leaves alone what it does not change (KEP-4008).
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
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/warning"
	kjson "sigs.k8s.io/json"
)

type question struct {
	Schema json.RawMessage `json:"schema"`
	Object json.RawMessage `json:"object"`
	Old    json.RawMessage `json:"old"`

	Ratchets bool `json:"ratchets"`
}

type answer struct {
	Refused  string   `json:"refused,omitempty"`
	Fatal    string   `json:"fatal,omitempty"`
	Schema   []string `json:"schema,omitempty"`
	Metadata []string `json:"metadata,omitempty"`
	Embedded []string `json:"embedded,omitempty"`
	Lists    []string `json:"lists,omitempty"`
	Rules    []string `json:"rules,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// AddWarning makes an answer the recorder of what its rules warn of.
func (a *answer) AddWarning(_, text string) {
	a.Warnings = append(a.Warnings, text)
	sort.Strings(a.Warnings)
}

func texts(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		out = append(out, err.Error())
	}
	sort.Strings(out)
	return out
}

func load(raw json.RawMessage, s *structural.Structural) (map[string]interface{}, error) {
	object := map[string]interface{}{}
	if _, err := kjson.UnmarshalStrict(raw, &object); err != nil {
		return nil, err
	}
	meta, found, err := objectmeta.GetObjectMeta(object, false)
	if err != nil {
		return nil, err
	}
	pruning.Prune(object, s, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s)
	if err := objectmeta.Coerce(nil, object, s, false, false); err != nil {
		return nil, err
	}
	if found {
		if err := objectmeta.SetObjectMeta(object, meta); err != nil {
			return nil, err
		}
	}
	defaulting.Default(object, s)
	return object, nil
}

func ask(line []byte) (a answer) {
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
	validator, _, err := validation.NewSchemaValidator(&internal)
	if err != nil {
		return answer{Refused: err.Error()}
	}
	object, err := load(q.Object, s)
	if err != nil {
		return answer{Fatal: err.Error()}
	}
	meta, _, err := objectmeta.GetObjectMeta(object, false)
	if err != nil {
		return answer{Fatal: err.Error()}
	}
	if meta != nil {
		if meta.Name == "" && meta.GenerateName != "" {
			meta.Name = "generated" // as the server does before it validates
		}
		a.Metadata = texts(metavalidation.ValidateObjectMeta(meta, meta.Namespace != "", metavalidation.NameIsDNSSubdomain, field.NewPath("metadata")))
	}
	if q.Ratchets {
		return update(a, q, s, validator, object)
	}
	a.Schema = texts(validation.ValidateCustomResource(nil, object, validator))
	a.Embedded = texts(objectmeta.Validate(context.Background(), nil, object, s, false))
	a.Lists = texts(listtype.ValidateListSetsAndMaps(nil, s, object))
	if rules := cel.NewValidator(s, true, celconfig.PerCallLimit); rules != nil {
		var old interface{}
		if len(q.Old) > 0 {
			if old, err = load(q.Old, s); err != nil {
				return answer{Fatal: err.Error()}
			}
		}
		errs, _ := rules.Validate(context.Background(), nil, s, object, old, celconfig.RuntimeCELCostBudget)
		a.Rules = texts(errs)
	}
	return a
}

// update is customResourceStrategy.ValidateUpdate (pkg/registry/customresource/strategy.go) without metadata.
func update(a answer, q question, s *structural.Structural, validator validation.SchemaValidator, object map[string]interface{}) answer {
	old, err := load(q.Old, s)
	if err != nil {
		return answer{Fatal: err.Error()}
	}
	correlated := common.NewCorrelatedObject(object, old, &model.Structural{Structural: s})
	a.Schema = texts(validation.ValidateCustomResourceUpdate(nil, object, old, validator, validation.WithRatcheting(correlated)))
	a.Embedded = texts(objectmeta.Validate(context.Background(), nil, object, s, false))
	if len(listtype.ValidateListSetsAndMaps(nil, s, old)) == 0 {
		a.Lists = texts(listtype.ValidateListSetsAndMaps(nil, s, object))
	}
	if rules := cel.NewValidator(s, true, celconfig.PerCallLimit); rules != nil {
		ctx := warning.WithWarningRecorder(context.Background(), &a)
		errs, _ := rules.Validate(ctx, nil, s, object, old, celconfig.RuntimeCELCostBudget, cel.WithRatcheting(correlated))
		a.Rules = texts(errs)
	}
	return a
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 1<<26)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		if err := out.Encode(ask(in.Bytes())); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
