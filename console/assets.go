package console

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"idemscope/web"
)

// asset is one static file. Its served name carries a hash of its content, so
// that browsers may keep it for ever.
type asset struct {
	served, contentType, etag string
	body                      []byte
	// small is the body in gzip; nil where that is not smaller.
	small []byte
}

// assets are the static files by the names that templates use.
type assets map[string]asset

// contentTypes does not depend on what the machine's MIME table says.
var contentTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

func loadAssets() (assets, error) {
	all := assets{}
	err := fs.WalkDir(web.Static, "static", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := web.Static.ReadFile(name)
		if err != nil {
			return err
		}
		ext := path.Ext(name)
		if contentTypes[ext] == "" {
			return fmt.Errorf("static file %s has no known content type", name)
		}
		sum := sha256.Sum256(body)
		hash := hex.EncodeToString(sum[:6])
		base := path.Base(name)
		small, err := deflate(body)
		if err != nil {
			return err
		}
		all[base] = asset{
			served: strings.TrimSuffix(base, ext) + "." + hash + ext, contentType: contentTypes[ext],
			etag: `"` + hash + `"`, body: body, small: small,
		}
		return nil
	})
	return all, err
}

// url returns the address of the file below the root of the console.
func (a assets) url(name string) (string, error) {
	file, ok := a[name]
	if !ok {
		return "", fmt.Errorf("no static file %s", name)
	}
	return "static/" + file.served, nil
}

func (c *console) static(g *gin.Context, _ visit) error {
	for _, file := range c.assets {
		if file.served == g.Param("name") {
			g.Header("Cache-Control", "public, max-age=31536000, immutable")
			file.serve(g)
			return nil
		}
	}
	return notFound()
}

// favicon answers browsers that ask for one without reading a page first.
func (c *console) favicon(g *gin.Context) { c.assets["mark.svg"].serve(g) }

func (a asset) serve(g *gin.Context) {
	g.Header("Content-Type", a.contentType)
	g.Header("Vary", "Accept-Encoding")
	body, etag := a.body, a.etag
	if a.small != nil && takesGzip(g.Request) {
		g.Header("Content-Encoding", "gzip")
		body, etag = a.small, strings.TrimSuffix(a.etag, `"`)+`-gzip"`
	}
	g.Header("ETag", etag)
	http.ServeContent(g.Writer, g.Request, a.served, time.Time{}, bytes.NewReader(body))
}
