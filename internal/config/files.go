package config

import (
	"path/filepath"
	"strings"
)

// filePath returns a path that stands in the file, which starts at the folder of the configuration.
func (r *reader) filePath(text string) string {
	if filepath.IsAbs(text) {
		return text
	}
	return filepath.Join(filepath.Dir(r.file), text)
}

// namedFile reads the file that an optional key names. path is "" when the key
// is left out; ok is false when there is nothing to use.
func (s *section) namedFile(key string) (path string, data []byte, ok bool) {
	text := s.text(key)
	if text == "" {
		return "", nil, false
	}
	path = s.filePath(text)
	data, err := s.readFile(path)
	if err != nil {
		v := s.value(key)
		s.problemf(v.at, v.path, "the file %s cannot be read: %s; a relative path starts at the folder of the configuration", path, cause(err))
		return path, nil, false
	}
	return path, data, true
}

// password reads "password" or "password_file".
func (s *section) password() Secret { return s.secret("password", "password_file") }

// secret reads a secret, or the file that holds it. One newline at the end of the
// file, which editors add, is not part of the secret.
func (s *section) secret(key, fileKey string) Secret {
	direct := s.text(key)
	path, data, ok := s.namedFile(fileKey)
	content := string(data)
	if line, cut := strings.CutSuffix(content, "\n"); cut {
		content = strings.TrimSuffix(line, "\r")
	}
	v := s.value(fileKey)
	switch {
	case direct != "" && path != "":
		s.problemf(v.at, v.path, "%s and %s exclude each other; keep one", key, fileKey)
	case ok && content == "":
		s.problemf(v.at, v.path, "the file %s holds no password", path)
	case ok:
		return Secret(content)
	}
	return Secret(direct)
}
