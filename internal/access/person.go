// Package access says who asks and what that person may do: roles, sign-in,
// sessions, and the check that a form was sent by the person who saw it.
//
// It knows no key and no store: what an action does is for package action.
package access

import (
	"context"
	"slices"
)

// Role is a right that a person has. Roles are words of the configuration.
type Role string

// The three rights. None includes another: an operator who may not see payloads
// acts on states alone.
const (
	// Viewer sees states: every page, without message bodies and results.
	Viewer Role = "viewer"
	// Payload sees message bodies and results, masked as configured.
	Payload Role = "payload"
	// Operator may change something.
	Operator Role = "operator"
)

// Person is whoever asks.
type Person struct {
	// Name as the source of identity gives it; empty for nobody in particular.
	Name string
	// Roles the person has.
	Roles []Role
	// From is the address that the request came from; empty on the command line.
	From string
}

// May reports whether the person has the right.
func (p Person) May(r Role) bool { return slices.Contains(p.Roles, r) }

type personKey struct{}

// With returns a context that knows the person.
func With(ctx context.Context, p Person) context.Context {
	return context.WithValue(ctx, personKey{}, p)
}

// Known reports whether somebody has said who asks, if only that it is nobody.
func Known(ctx context.Context) bool {
	_, known := ctx.Value(personKey{}).(Person)
	return known
}

// Of returns the person of the context; without one, nobody with no right.
func Of(ctx context.Context) Person {
	p, _ := ctx.Value(personKey{}).(Person)
	return p
}
