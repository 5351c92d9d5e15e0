package flow

import (
	"fmt"
	"strings"
)

// Language is a language of the user interface.
type Language string

// The two languages of the user interface.
const (
	English Language = "en"
	Chinese Language = "zh"
)

// Languages lists every language in the order in which a switch offers them.
var Languages = []Language{English, Chinese}

// ParseLanguage takes a language tag such as "zh-CN", "en" or "en_US.UTF-8".
// ok is false for a language that the interface does not speak.
func ParseLanguage(tag string) (lang Language, ok bool) {
	primary, _, _ := strings.Cut(strings.NewReplacer("_", "-", ".", "-").Replace(strings.ToLower(strings.TrimSpace(tag))), "-")
	switch primary {
	case "en":
		return English, true
	case "zh":
		return Chinese, true
	}
	return English, false
}

// Text is one sentence in both languages. It is written where the fact is
// known, so that neither language can lag behind the other.
type Text struct {
	EN, ZH string
}

// T formats both languages with the same arguments. Where the word order
// differs, use indexed verbs such as %[2]s.
func T(en, zh string, args ...any) Text {
	if len(args) == 0 {
		return Text{EN: en, ZH: zh}
	}
	return Text{EN: fmt.Sprintf(en, localize(English, args)...), ZH: fmt.Sprintf(zh, localize(Chinese, args)...)}
}

// localize replaces arguments that are texts themselves by their wording in lang.
func localize(lang Language, args []any) []any {
	out := make([]any, len(args))
	for i, arg := range args {
		if t, ok := arg.(Text); ok {
			arg = t.In(lang)
		}
		out[i] = arg
	}
	return out
}

// In returns the wording in lang; English when lang is unknown.
func (t Text) In(lang Language) string {
	if lang == Chinese {
		return t.ZH
	}
	return t.EN
}

// Empty reports whether the text says nothing.
func (t Text) Empty() bool { return t == Text{} }
