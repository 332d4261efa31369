package servers

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// replyPatience bounds how long a command of a test waits for its reply.
const replyPatience = 20 * time.Second

// RESP is a connection that speaks the protocol of Redis (RESP2), just enough
// of it for tests. One goroutine at a time may send, and one receive.
type RESP struct {
	net.Conn
	r *bufio.Reader
}

// ReplyError is an error that the server itself replied with, such as
// "WRONGTYPE ...". Any other error of a RESP is one of the connection, and
// leaves open whether the command was run.
type ReplyError string

func (e ReplyError) Error() string { return "redis: " + string(e) }

// DialRESP connects to an address.
func DialRESP(addr string) (*RESP, error) {
	c, err := net.DialTimeout("tcp", addr, replyPatience)
	if err != nil {
		return nil, err
	}
	return &RESP{Conn: c, r: bufio.NewReader(c)}, nil
}

// Do sends a command and returns its reply: a string for a simple or bulk
// string, an int64, a []any for an array (whose elements may be a ReplyError),
// or nil. A reply that is an error comes back as a [ReplyError]. Arguments that
// aren't strings are printed as fmt.Sprint does.
//
// Do has no deadline but the one set by SetDeadline.
func (c *RESP) Do(args ...any) (any, error) {
	if err := c.Send(args...); err != nil {
		return nil, err
	}
	return c.Receive()
}

// Send writes a command and doesn't wait for its reply.
func (c *RESP) Send(args ...any) error {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		s, ok := a.(string)
		if !ok {
			s = fmt.Sprint(a)
		}
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(s), s)
	}
	_, err := c.Write(b)
	return err
}

// Receive reads the next reply.
func (c *RESP) Receive() (any, error) {
	v, err := c.reply()
	if err != nil {
		return nil, err
	}
	if e, ok := v.(ReplyError); ok {
		return nil, e
	}
	return v, nil
}

func (c *RESP) reply() (any, error) {
	line, err := c.line()
	if err != nil {
		return nil, err
	}
	kind, rest := line[0], line[1:]
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return ReplyError(rest), nil
	case ':':
		return strconv.ParseInt(rest, 10, 64)
	case '$':
		return c.bulk(rest)
	case '*':
		return c.array(rest)
	}
	return nil, fmt.Errorf("redis: unknown reply %q", line)
}

func (c *RESP) line() (string, error) {
	s, err := c.r.ReadString('\n')
	if err != nil {
		return "", err
	}
	if len(s) < 3 || s[len(s)-2] != '\r' {
		return "", fmt.Errorf("redis: malformed line %q", s)
	}
	return s[:len(s)-2], nil
}

func (c *RESP) bulk(size string) (any, error) {
	n, err := strconv.Atoi(size)
	if err != nil || n < 0 {
		return nil, err // -1 is nil
	}
	b := make([]byte, n+2)
	if _, err := io.ReadFull(c.r, b); err != nil {
		return nil, err
	}
	return string(b[:n]), nil
}

func (c *RESP) array(size string) (any, error) {
	n, err := strconv.Atoi(size)
	if err != nil || n < 0 {
		return nil, err // -1 is nil
	}
	all := make([]any, n)
	for i := range all {
		if all[i], err = c.reply(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// doOnce runs one command on a connection of its own.
func doOnce(addr string, args ...any) (any, error) {
	c, err := DialRESP(addr)
	if err != nil {
		return nil, err
	}
	if err := c.SetDeadline(time.Now().Add(replyPatience)); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	v, err := c.Do(args...)
	return v, errors.Join(err, c.Close())
}
