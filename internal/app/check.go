package app

import (
	"errors"
	"fmt"
	"io"

	"idemscope/internal/config"
)

// CheckConfig validates the configuration without asking any store. With show,
// it prints the effective configuration, secrets masked.
func CheckConfig(path string, show bool, out io.Writer) error {
	c, err := config.Load(path)
	if err != nil {
		return err
	}
	s, err := openStores(c)
	if err != nil {
		return err
	}
	_, deskErr := s.desk(c)
	if err := errors.Join(deskErr, s.close()); err != nil {
		return err
	}
	if show {
		text, err := c.Redacted()
		if err != nil {
			return err
		}
		_, err = out.Write(text)
		return err
	}
	_, err = fmt.Fprintf(out, "%s is valid: %d flows, %d ledgers\n", path, len(c.Flows), len(c.Ledgers))
	return err
}
