package pglock

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// moment is how long a caller waits on its own goroutine for the answer to its
// statement, deaf to its ctx. To wake another goroutine and to be woken by it costs
// about as much as a server that is near.
const moment = 5 * time.Millisecond

// An exchange is one prepared statement under way on a session. What was read of
// its answer stays read, so that a caller whom it takes too long leaves the rest to
// another goroutine: pgx's own calls end the connection with their ctx.
type exchange struct {
	s   *session
	row func(values [][]byte) error // which must not be kept

	whole bool  // the answer has been read
	err   error // what the server, the connection or row said
}

// begin sends a statement that was prepared as name. Arguments and answers are in
// text. A connection that fails here fails in hear.
func (s *session) begin(name string, args [][]byte, row func(values [][]byte) error) *exchange {
	f := s.PgConn().Frontend()
	f.SendBind(&pgproto3.Bind{PreparedStatement: name, Parameters: args})
	f.SendExecute(&pgproto3.Execute{})
	f.SendSync(&pgproto3.Sync{})
	if f.Flush() != nil {
		_ = s.raw.Close()
	}
	return &exchange{s: s, row: row}
}

// hear reads the answer, and tells whether it is whole. It is not if the time is up;
// then hear can be called again.
func (x *exchange) hear(until time.Time) bool {
	if x.whole {
		return true
	}
	_ = x.s.raw.SetReadDeadline(until)
	for {
		msg, err := x.s.PgConn().ReceiveMessage(context.Background())
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) && !x.s.IsClosed() {
				return false
			}
			if x.err == nil {
				x.err = err
			}
			x.whole = true
			return true
		}
		switch msg := msg.(type) {
		case *pgproto3.DataRow:
			if x.err == nil {
				x.err = x.row(msg.Values)
			}
		case *pgproto3.ErrorResponse:
			if x.err == nil {
				x.err = pgconn.ErrorResponseToPgError(msg)
			}
		case *pgproto3.ReadyForQuery:
			_ = x.s.raw.SetReadDeadline(time.Time{})
			x.whole = true
			return true
		}
	}
}
