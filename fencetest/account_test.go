package fencetest_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/dibslock/dibs/fence"
)

// An account is a resource: a number that holders read, and write back. Its guard
// checks the lease, or, in a control run, nobody does.
type account interface {
	read(ctx context.Context, lease fence.Fenced) (int, error)
	write(ctx context.Context, lease fence.Fenced, balance int) error
	close()
}

// openAccount opens the account of a kind at a URL, as a holder in whatever process
// does.
func openAccount(kind, url string, guarded bool) (account, error) {
	switch kind {
	case "http":
		return webAccount{url, guarded}, nil
	case "redis":
		return openRedisAccount(url, guarded)
	}
	for _, k := range kinds {
		if k.name == kind {
			db, err := sql.Open(k.driver, url)
			return sqlAccount{k, db, guarded}, err
		}
	}
	return nil, fmt.Errorf("no account of kind %q", kind)
}

// A sqlAccount is a row.
type sqlAccount struct {
	kind
	db      *sql.DB
	guarded bool
}

func (a sqlAccount) close() { a.db.Close() }

// inTx does one thing in a transaction that checks the lease first.
func (a sqlAccount) inTx(ctx context.Context, lease fence.Fenced, fn func(tx *sql.Tx) error) error {
	tx, err := a.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if a.guarded {
		if err := (fence.SQL{Dialect: a.dialect}).Check(ctx, tx, lease); err != nil {
			return err
		}
	}
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

func (a sqlAccount) read(ctx context.Context, lease fence.Fenced) (balance int, err error) {
	err = a.inTx(ctx, lease, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, "SELECT balance FROM accounts WHERE name = 'ann'").Scan(&balance)
	})
	return balance, err
}

func (a sqlAccount) write(ctx context.Context, lease fence.Fenced, balance int) error {
	return a.inTx(ctx, lease, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, a.q("UPDATE accounts SET balance = ? WHERE name = 'ann'"), balance)
		return err
	})
}

// A redisAccount is a key.
type redisAccount struct {
	client  rueidis.Client
	guard   fence.Redis
	guarded bool
}

const redisKey = "balance:{ann}"

func openRedisAccount(addr string, guarded bool) (account, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
	if err != nil {
		return nil, err
	}
	return redisAccount{client, fence.Redis{Eval: evalBy(client)}, guarded}, nil
}

// evalBy is the adapter that the documentation of fence.Eval shows.
func evalBy(client rueidis.Client) fence.Eval {
	return func(ctx context.Context, script string, keys, args []string) (any, error) {
		return rueidis.NewLuaScript(script).Exec(ctx, client, keys, args).ToAny()
	}
}

func (a redisAccount) close() { a.client.Close() }

func (a redisAccount) read(ctx context.Context, lease fence.Fenced) (int, error) {
	if !a.guarded {
		n, err := a.client.Do(ctx, a.client.B().Get().Key(redisKey).Build()).AsInt64()
		return int(n), err
	}
	reply, err := a.guard.Run(ctx, lease, "return redis.call('GET', KEYS[1])", []string{redisKey})
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(fmt.Sprint(reply))
}

func (a redisAccount) write(ctx context.Context, lease fence.Fenced, balance int) error {
	value := strconv.Itoa(balance)
	if !a.guarded {
		return a.client.Do(ctx, a.client.B().Set().Key(redisKey).Value(value).Build()).Error()
	}
	return a.guard.Set(ctx, lease, redisKey, value)
}

// A webAccount is behind a server: see bank.
type webAccount struct {
	url     string
	guarded bool
}

func (a webAccount) close() {}

func (a webAccount) do(ctx context.Context, lease fence.Fenced, method, body string) (string, error) {
	client := http.DefaultClient
	if a.guarded {
		client = &http.Client{Transport: &fence.Transport{Lease: lease}}
	}
	req, err := http.NewRequestWithContext(ctx, method, a.url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if err := fence.ResponseError(resp); err != nil {
		return "", err
	}
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, text)
	}
	return string(text), err
}

func (a webAccount) read(ctx context.Context, lease fence.Fenced) (int, error) {
	text, err := a.do(ctx, lease, http.MethodGet, "")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}

func (a webAccount) write(ctx context.Context, lease fence.Fenced, balance int) error {
	_, err := a.do(ctx, lease, http.MethodPut, strconv.Itoa(balance))
	return err
}
