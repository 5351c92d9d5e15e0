// Package flow holds the vocabulary of idempotent consumption that every other
// package shares: the Key of one business operation, the Flow it travels
// (queue -> lock -> record), the Observation of one layer with its four states,
// and texts in the two languages of the user interface.
//
// It is not a place for input or output of any kind: it imports nothing of ours
// and opens nothing.
package flow
