package config

func (c Console) redactedAuth() *group {
	g, a := &group{}, c.Auth
	g.text("passwords_file", a.PasswordsFile)
	g.part("oidc", a.OIDC.redacted())
	proxy := &group{}
	proxy.text("header", a.Proxy.Header)
	proxy.text("groups_header", a.Proxy.GroupsHeader)
	var from []string
	for _, n := range a.Proxy.From {
		from = append(from, n.String())
	}
	proxy.list("from", from)
	g.part("proxy", proxy)
	g.duration("session", a.Session)
	g.text("session_key_file", a.SessionKeyFile)
	if a.Roles {
		roles := &group{}
		roles.add("viewer", literals(a.Viewer))
		roles.add("payload", literals(a.Payload))
		roles.add("operator", literals(a.Operator))
		g.part("roles", roles)
	}
	return g
}

func (o AuthOIDC) redacted() *group {
	g := &group{}
	if o.Issuer == "" {
		return g
	}
	g.text("issuer", o.Issuer)
	g.text("client_id", o.ClientID)
	g.text("client_secret", o.ClientSecret.String())
	g.text("redirect_url", o.RedirectURL)
	g.text("name_claim", o.NameClaim)
	g.text("groups_claim", o.GroupsClaim)
	g.list("scopes", o.Scopes)
	return g
}

func (m Mask) redacted() *group {
	g := &group{}
	g.list("json", m.JSON)
	g.list("patterns", m.Patterns)
	return g
}
