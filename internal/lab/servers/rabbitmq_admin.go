package servers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// adminTimeout bounds one call of the management API.
const adminTimeout = 15 * time.Second

// RabbitMQUser is a user to be created.
type RabbitMQUser struct {
	Name     string
	Password string
	// Tags are the management roles: "administrator", "monitoring", "management" or none.
	Tags []string
	// Permissions are the rights per vhost name.
	Permissions map[string]RabbitMQPermissions
}

// RabbitMQPermissions are patterns of the names that a user may configure, write and read. "^$" matches nothing.
type RabbitMQPermissions struct {
	Configure string `json:"configure"`
	Write     string `json:"write"`
	Read      string `json:"read"`
}

// CreateVhost creates a vhost on which the administrator has full rights.
func (r *RabbitMQ) CreateVhost(ctx context.Context, name string) error {
	if err := r.call(ctx, http.MethodPut, apiPath("vhosts", name), struct{}{}, nil); err != nil {
		return err
	}
	return r.permit(ctx, r.Admin, name, RabbitMQPermissions{".*", ".*", ".*"})
}

// DeleteVhost deletes a vhost with all that is in it.
func (r *RabbitMQ) DeleteVhost(ctx context.Context, name string) error {
	return r.call(ctx, http.MethodDelete, apiPath("vhosts", name), nil, nil)
}

// CreateUser creates a user or replaces the password and the tags of an existing one.
func (r *RabbitMQ) CreateUser(ctx context.Context, user RabbitMQUser) error {
	body := map[string]string{"password": user.Password, "tags": strings.Join(user.Tags, ",")}
	if err := r.call(ctx, http.MethodPut, apiPath("users", user.Name), body, nil); err != nil {
		return err
	}
	for vhost, permissions := range user.Permissions {
		if err := r.permit(ctx, user.Name, vhost, permissions); err != nil {
			return err
		}
	}
	return nil
}

// DeleteUser deletes a user.
func (r *RabbitMQ) DeleteUser(ctx context.Context, name string) error {
	return r.call(ctx, http.MethodDelete, apiPath("users", name), nil, nil)
}

func (r *RabbitMQ) permit(ctx context.Context, user, vhost string, permissions RabbitMQPermissions) error {
	return r.call(ctx, http.MethodPut, apiPath("permissions", vhost, user), permissions, nil)
}

// isOurs is true for the broker that knows our random password, has our node name and our ports, and wrote the
// process id of our child into our directory.
func (r *RabbitMQ) isOurs(ctx context.Context, node string, p rabbitPorts) error {
	pid, err := os.ReadFile(r.run.dir.file("pid"))
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(pid)) != strconv.Itoa(r.Pid) {
		return fmt.Errorf("the broker is process %q, not %d", pid, r.Pid)
	}
	var overview struct {
		Node      string
		Listeners []struct {
			Node string
			Port int
		}
	}
	if err := r.call(ctx, http.MethodGet, apiPath("overview"), nil, &overview); err != nil {
		return err
	}
	if overview.Node != node {
		return fmt.Errorf("the broker at %s is %q, not %q", r.Management, overview.Node, node)
	}
	var open []int
	for _, l := range overview.Listeners {
		open = append(open, l.Port)
	}
	for _, port := range []int{p.amqp, p.management, p.stream} {
		if !slices.Contains(open, port) {
			return fmt.Errorf("the broker does not listen on port %d yet", port)
		}
	}
	return nil
}

// apiPath joins escaped segments, so that a vhost may be called "/".
func apiPath(segments ...string) string {
	path := "/api"
	for _, s := range segments {
		path += "/" + url.PathEscape(s)
	}
	return path
}

// call sends body as JSON, if any, and decodes the answer into result, if any.
func (r *RabbitMQ) call(ctx context.Context, method, path string, body, result any) error {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.Management+path, content)
	if err != nil {
		return err
	}
	req.SetBasicAuth(r.Admin, r.Password)
	req.Header.Set("Content-Type", "application/json")
	// A connection per call leaves no goroutine behind; a proxy setting must not apply to our own loopback server.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, bytes.TrimSpace(answer))
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(answer, result)
}
