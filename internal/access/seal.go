package access

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// purpose keeps what was sealed for one thing from being taken for another.
type purpose string

const (
	forSession  purpose = "session"
	forForm     purpose = "form"
	forProvider purpose = "oidc"
	forUser     purpose = "user"
)

// keySize is the size of the keys that the process makes for itself.
const keySize = 32

func newKey() []byte {
	key := make([]byte, keySize)
	// It never fails: without randomness the program ends.
	_, _ = rand.Read(key)
	return key
}

// sum authenticates data for one purpose. bound is not part of what travels: both
// sides know it.
func sum(key []byte, p purpose, bound string, data []byte) []byte {
	derived := hmac.New(sha256.New, key)
	derived.Write([]byte("idemscope " + p))
	mac := hmac.New(sha256.New, derived.Sum(nil))
	mac.Write(data)
	// The length keeps data and bound apart.
	mac.Write([]byte{byte(len(data) >> 24), byte(len(data) >> 16), byte(len(data) >> 8), byte(len(data))})
	mac.Write([]byte(bound))
	return mac.Sum(nil)
}

var encoding = base64.RawURLEncoding.Strict()

// seal returns data as text that nobody can make or change without the key.
func (g *Guard) seal(p purpose, bound string, data []byte) string {
	return encoding.EncodeToString(data) + "." + encoding.EncodeToString(sum(g.Keys[0], p, bound, data))
}

// open returns the data of a sealed text; ok is false when no key made it.
func (g *Guard) open(p purpose, bound, text string) (data []byte, ok bool) {
	head, tail, _ := strings.Cut(text, ".")
	data, err := encoding.DecodeString(head)
	if err != nil {
		return nil, false
	}
	mac, err := encoding.DecodeString(tail)
	if err != nil {
		return nil, false
	}
	for _, key := range g.Keys {
		if hmac.Equal(mac, sum(key, p, bound, data)) {
			return data, true
		}
	}
	return nil, false
}
