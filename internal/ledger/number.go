package ledger

import (
	"context"
	"database/sql"
	"math"
	"strconv"

	"github.com/jmoiron/sqlx"

	"idemscope/internal/flow"
)

// Number asks a query that the operator wrote for one number: one row of one
// column. Anything else is an error, as NULL is; Explain words it. The session
// only reads, and the server ends the statement at the server's limit.
func (s *Server) Number(ctx context.Context, query string) (n float64, err error) {
	rows := 0
	var text sql.NullString
	err = s.query(ctx, statement{text: query}, func(r *sqlx.Rows) error {
		names, err := r.Columns()
		if err != nil {
			return err
		}
		if rows++; rows > 1 || len(names) != 1 {
			return errNotOne
		}
		return r.Scan(&text)
	})
	switch {
	case err != nil:
		return 0, err
	case rows == 0:
		return 0, &sweepError{flow.T("it has no row", "结果没有行")}
	case !text.Valid:
		return 0, &sweepError{flow.T("it is NULL", "结果为 NULL")}
	}
	n, err = strconv.ParseFloat(text.String, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return 0, &sweepError{flow.T("it is no number", "结果不是数字")}
	}
	return n, nil
}

var errNotOne error = &sweepError{flow.T("it has more than one row or column", "结果多于一行或一列")}
