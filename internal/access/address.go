package access

import (
	"net/url"
	"path"
	"strings"
	"unicode"
)

// maxReturn bounds a return address, in bytes: an id of 10 kB is three times as
// long in an address.
const maxReturn = 40_000

// Return returns the address below the console's root that a sign-in may lead
// back to: the given one, or "" for the start page when it is none of ours.
func Return(address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil || len(address) > maxReturn:
	case u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "":
	case strings.HasPrefix(u.Path, "/") || strings.ContainsAny(u.Path, "\\:"):
	case strings.ContainsRune(address, '\\') || strings.IndexFunc(address, unicode.IsControl) >= 0:
	case u.Path != "" && path.Clean("/"+u.Path) != "/"+u.Path:
	default:
		u.Fragment, u.RawFragment = "", ""
		return u.String()
	}
	return ""
}
