package console

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/gin-gonic/gin"

	"idemscope/internal/flow"
)

// attach makes a browser keep the answer as a file of that name.
func attach(g *gin.Context, name string) {
	g.Header("Content-Disposition", `attachment; filename="`+name+`"`)
}

// maxFileName is how much of a biz_type or biz_id stands in the name of a file.
const maxFileName = 40

// keyFile names a file about a key with letters that every system and every header
// takes. Where those are not all of the key, a hash tells files apart.
func keyFile(k flow.Key, ext string) string {
	bizType, id := fileLetters(k.BizType), fileLetters(k.BizID)
	name := "idemscope-" + bizType + "-" + id
	if bizType != k.BizType || id != k.BizID {
		sum := sha256.Sum256([]byte(flow.Place{Key: k}.Encode()))
		name += "-" + hex.EncodeToString(sum[:4])
	}
	return name + "." + ext
}

func fileLetters(s string) string {
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, s)
	return safe[:min(len(safe), maxFileName)]
}
