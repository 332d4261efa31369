package servers

import (
	"bufio"
	endian "encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// PG is a connection that speaks the protocol of PostgreSQL, just enough of it
// for tests: no password, no TLS, one simple query at a time.
type PG struct {
	net.Conn
	r *bufio.Reader
}

// PGError is an error that the server itself replied with, such as
// "55P03 canceling statement due to lock timeout".
type PGError string

func (e PGError) Error() string { return "postgres: " + string(e) }

// DialPG connects as a user to a database of the server at an address.
func DialPG(addr, user, database string) (*PG, error) {
	c, err := net.DialTimeout("tcp", addr, replyPatience)
	if err != nil {
		return nil, err
	}
	p := &PG{Conn: c, r: bufio.NewReader(c)}
	if err := p.startUp(user, database); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return p, nil
}

func (p *PG) startUp(user, database string) error {
	if err := p.SetDeadline(time.Now().Add(replyPatience)); err != nil {
		return err
	}
	body := endian.BigEndian.AppendUint32(nil, 3<<16) // the protocol's version
	for _, s := range []string{"user", user, "database", database, ""} {
		body = append(append(body, s...), 0)
	}
	if _, err := p.Write(append(endian.BigEndian.AppendUint32(nil, uint32(len(body)+4)), body...)); err != nil {
		return err
	}
	if _, err := p.answer(); err != nil {
		return err
	}
	return p.SetDeadline(time.Time{})
}

// Query runs sql, which may be several statements, and returns the rows of all,
// each column as text; NULL is "". It has no deadline but the one set by
// SetDeadline.
func (p *PG) Query(sql string) ([][]string, error) {
	msg := endian.BigEndian.AppendUint32([]byte{'Q'}, uint32(len(sql)+5))
	if _, err := p.Write(append(append(msg, sql...), 0)); err != nil {
		return nil, err
	}
	return p.answer()
}

// answer reads up to the moment at which the server is ready for a query.
func (p *PG) answer() (rows [][]string, failed error) {
	for {
		kind, body, err := p.message()
		if err != nil {
			return nil, errors.Join(failed, err)
		}
		switch kind {
		case 'R': // of authentication: 0 is all that is known here
			if len(body) < 4 || endian.BigEndian.Uint32(body) != 0 {
				return nil, errors.New("postgres: the server wants a password")
			}
		case 'D':
			rows = append(rows, columns(body))
		case 'E':
			failed = pgError(body)
		case 'Z':
			return rows, failed
		}
	}
}

func (p *PG) message() (kind byte, body []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(p.r, head[:]); err != nil {
		return 0, nil, err
	}
	n := endian.BigEndian.Uint32(head[1:])
	if n < 4 || n > 1<<30 {
		return 0, nil, fmt.Errorf("postgres: a message of %d bytes", n)
	}
	body = make([]byte, n-4)
	_, err = io.ReadFull(p.r, body)
	return head[0], body, err
}

func columns(body []byte) []string {
	row := make([]string, endian.BigEndian.Uint16(body))
	body = body[2:]
	for i := range row {
		n := int32(endian.BigEndian.Uint32(body))
		body = body[4:]
		if n >= 0 {
			row[i], body = string(body[:n]), body[n:]
		}
	}
	return row
}

// pgError is the code and the message of an error's fields.
func pgError(body []byte) error {
	var code, message string
	for field := range strings.SplitSeq(string(body), "\x00") {
		switch {
		case strings.HasPrefix(field, "C"):
			code = field[1:]
		case strings.HasPrefix(field, "M"):
			message = field[1:]
		}
	}
	return PGError(code + " " + message)
}

// queryOnce runs one query on a connection of its own.
func queryOnce(addr, user, database, sql string) ([][]string, error) {
	p, err := DialPG(addr, user, database)
	if err != nil {
		return nil, err
	}
	if err := p.SetDeadline(time.Now().Add(replyPatience)); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	rows, err := p.Query(sql)
	return rows, errors.Join(err, p.Close())
}
