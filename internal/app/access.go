package app

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strings"

	"idemscope/internal/access"
	"idemscope/internal/config"
	"idemscope/internal/mask"
)

// newGuard sets up who may do what. memory outlives the configuration; record
// keeps refusals and may be nil.
func newGuard(c *config.Config, memory *access.Memory, record access.Recorder, logger *slog.Logger) (*access.Guard, error) {
	auth := c.Console.Auth
	o := access.Options{
		Listener: c.WebAuth, ListenerPasswords: c.WebUsers, Actions: c.Console.Actions, Session: auth.Session, Prefix: c.Console.PathPrefix,
		Memory: memory, Audit: record, Logger: logger,
	}
	for _, u := range auth.Users {
		o.Users = append(o.Users, access.User{Name: u.Name, Hash: []byte(u.Hash.Reveal())})
	}
	for _, key := range auth.SessionKeys {
		o.Keys = append(o.Keys, []byte(key.Reveal()))
	}
	if p := auth.OIDC; p.Issuer != "" {
		o.OIDC = &access.OIDC{
			Issuer: p.Issuer, ClientID: p.ClientID, ClientSecret: p.ClientSecret.Reveal(), RedirectURL: p.RedirectURL,
			NameClaim: p.NameClaim, GroupsClaim: p.GroupsClaim, Scopes: p.Scopes,
		}
	}
	if p := auth.Proxy; len(p.From) > 0 {
		o.Proxy = &access.Proxy{Header: p.Header, Groups: p.GroupsHeader, From: p.From}
	}
	if auth.Roles {
		o.Rules = access.Rules{access.Viewer: auth.Viewer, access.Payload: auth.Payload, access.Operator: auth.Operator}
	}
	warnOfSignIn(c, logger)
	return access.New(o)
}

// warnOfSignIn says what whoever set up the sign-in may not have thought of.
func warnOfSignIn(c *config.Config, logger *slog.Logger) {
	auth := c.Console.Auth
	if len(auth.Users) == 0 && auth.OIDC.Issuer == "" {
		return
	}
	if auth.SessionKeyFile == "" {
		logger.Info("sign-ins end when this process does; console.auth.session_key_file makes them last")
	}
	if !c.WebTLS && len(auth.Proxy.From) == 0 && !strings.HasPrefix(auth.OIDC.RedirectURL, "https:") {
		logger.Warn("passwords and cookies travel unencrypted: set web_config with a certificate, or put a proxy with TLS in front and name it in console.auth.proxy.from")
	}
}

// newMask sets up what is hidden. Its error names the place in the file.
func newMask(c *config.Config) (*mask.Mask, error) {
	m, err := mask.New(c.Console.Mask.JSON, c.Console.Mask.Patterns)
	var wrong mask.PathError
	if errors.As(err, &wrong) {
		key := fmt.Sprintf("console.mask.json[%d]", wrong.Index)
		return nil, fmt.Errorf("%s: %s: %w", c.At(key), key, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: console.mask: %w", c.At("console.mask"), err)
	}
	return m, nil
}

// below serves a console that browsers see below a path. The proxy in front may
// keep the path or strip it: a request without it is served as it is.
func below(prefix string, h http.Handler) http.Handler {
	if prefix == "" {
		return h
	}
	stripped := http.StripPrefix(prefix, h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == prefix:
			// Relative, so that it holds for whatever name the proxy has.
			to := url.URL{Path: path.Base(prefix) + "/", RawQuery: r.URL.RawQuery}
			w.Header().Set("Location", to.String())
			w.WriteHeader(http.StatusTemporaryRedirect)
		case strings.HasPrefix(r.URL.Path, prefix+"/"):
			stripped.ServeHTTP(w, r)
		default:
			h.ServeHTTP(w, r)
		}
	})
}
