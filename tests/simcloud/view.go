package simcloud

import (
	"encoding/json"
	"fmt"
	"time"
)

// This file has the form of objects in answers.

// audience determines which fields of an object an answer has.
type audience int

const (
	toCaller audience = iota
	// toCreator is for the answer of a create.
	toCreator
	// toControl is for the control API.
	toControl
)

func audienceOf(strict bool) audience {
	if strict {
		return toControl
	}
	return toCaller
}

// view returns an object with the fields for an audience.
func (o *object) view(now time.Time, to audience) map[string]any {
	v := decode(o.fields)
	for _, f := range o.kind.fields {
		if f.once && to != toCreator || f.hidden && to != toControl {
			delete(v, f.name)
		}
	}
	if o.kind.status && now.Before(o.ready) {
		v["status"] = "pending"
	}
	v["id"], v["revision"] = o.id, float64(o.revision)
	created, updated := o.created, o.updated
	if o.repeatable {
		created = time.Unix(numberOf(o.id), 0)
		updated = created.Add(time.Duration(o.revision-1) * time.Second)
	}
	v["created_at"] = created.UTC().Format(time.RFC3339Nano)
	v["updated_at"] = updated.UTC().Format(time.RFC3339Nano)
	return v
}

func encode(fields map[string]any) []byte {
	b, err := json.Marshal(fields)
	if err != nil {
		panic(fmt.Sprintf("encode fields that came from JSON: %v", err))
	}
	return b
}

func decode(b []byte) map[string]any {
	m := map[string]any{}
	if err := json.Unmarshal(b, &m); err != nil {
		panic(fmt.Sprintf("decode fields that this process encoded: %v", err))
	}
	return m
}

func sameJSON(a, b any) bool {
	x, errA := json.Marshal(a)
	y, errB := json.Marshal(b)
	return errA == nil && errB == nil && string(x) == string(y)
}
