package pglock

import (
	"context"
	"errors"
	"net/url"
	"regexp"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dibslock/dibs/driver"
)

func init() {
	driver.Register("postgres", openTableURL)
	driver.Register("postgresql", openTableURL)
}

// libpq are the parameters of a connection URL that are PostgreSQL's own.
var libpq = []string{
	"host", "port", "user", "password", "passfile", "dbname", "application_name", "connect_timeout", "target_session_attrs",
	"sslmode", "sslcert", "sslkey", "sslrootcert", "sslpassword", "sslsni", "sslnegotiation", "min_protocol_version",
	"max_protocol_version", "channel_binding", "krbspn", "krbsrvname", "service", "servicefile",
}

// A pooler says what stands between us and the server.
type pooler string

const (
	poolerAuto        pooler = "auto"        // find out
	poolerSession     pooler = "session"     // one server connection a client connection
	poolerTransaction pooler = "transaction" // one for each transaction
)

// params are what a store's URL says, but for its scheme's own.
type params struct {
	*driver.Params
	conn   *pgx.ConnConfig
	schema string // quoted
	bare   string // not quoted
	pooler pooler
}

var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,40}$`)

// readURL takes the parameters that all schemes have; rest then takes the others.
func readURL(u *url.URL, rest func(p *driver.Params)) (*params, error) {
	p := &params{Params: driver.NewParams(u)}
	p.bare = p.String("schema", "dibs")
	p.pooler = pooler(p.Choice("pooler", string(poolerAuto), string(poolerSession), string(poolerTransaction)))
	query := url.Values{}
	for _, key := range libpq {
		if v := p.String(key, ""); v != "" {
			query.Set(key, v)
		}
	}
	rest(p.Params)
	if err := p.Err(); err != nil {
		return nil, err
	}
	if !schemaName.MatchString(p.bare) {
		return nil, driver.Rejectedf("", "the store's URL: schema %q: want a lower-case letter or _, then up to 40 of a-z, 0-9 and _", p.bare)
	}
	if u.Fragment != "" || u.Opaque != "" {
		return nil, driver.Rejectedf("", "the store's URL: want %s://user@host:port/database", u.Scheme)
	}
	p.schema = pgx.Identifier{p.bare}.Sanitize()
	plain := *u
	plain.Scheme, plain.RawQuery = "postgres", query.Encode()
	conf, err := pgx.ParseConfig(plain.String())
	if err != nil {
		return nil, driver.Rejectedf("", "the store's URL: %v", parseCause(err))
	}
	p.conn = conf
	if conf.RuntimeParams["application_name"] == "" {
		conf.RuntimeParams["application_name"] = "dibs"
	}
	return p, nil
}

// parseCause is what is wrong with a URL, without the URL and its password.
func parseCause(err error) error {
	var pe *pgconn.ParseConfigError
	if errors.As(err, &pe) {
		if cause := errors.Unwrap(pe); cause != nil {
			return cause
		}
		return errors.New("it can't be parsed")
	}
	return err
}

// OpenTable opens the lease table that rawURL names: postgres://user@host/database,
// with PostgreSQL's own parameters and, besides, schema (dibs), journal (off, on),
// create (off, on) and pooler (auto, session, transaction). See Open of package
// driver for a store of any kind, and of ShedLock's table (layout=shedlock), which
// is an [errors.ErrUnsupported] here.
func OpenTable(ctx context.Context, rawURL string) (*Table, error) {
	s, err := openAs(ctx, rawURL, openTableURL)
	if err != nil {
		return nil, err
	}
	t, ok := s.(*Table)
	if !ok {
		return nil, errors.Join(driver.Unsupportedf("pglock.OpenTable: the store's URL names a table of another layout: use driver.Open"), s.Close())
	}
	return t, nil
}

// OpenAdvisory opens the advisory locks of the database that rawURL names:
// pgadvisory://user@host/database, with PostgreSQL's own parameters and, besides,
// schema (dibs), create (off, on), fence (on, off), hash (sha256, hashtext), key
// (hash, raw), namespace, sessions (1 to 4) and pooler (auto, session).
func OpenAdvisory(ctx context.Context, rawURL string) (*Advisory, error) {
	s, err := openAs(ctx, rawURL, openAdvisoryURL)
	a, _ := s.(*Advisory)
	return a, err
}

func openAs(ctx context.Context, rawURL string, open driver.Opener) (driver.Store, error) {
	u, err := driver.ParseURL(rawURL)
	if err != nil {
		return nil, err
	}
	return open(ctx, u)
}

// openTableURL opens postgres://user@host/database.
func openTableURL(ctx context.Context, u *url.URL) (driver.Store, error) {
	var opts TableOptions
	var shed shedParams
	create, layout := false, layoutLease
	p, err := readURL(u, func(p *driver.Params) {
		opts.Journal = p.Choice("journal", "off", "on") == "on"
		create = p.Choice("create", "off", "on") == "on"
		layout = p.Choice("layout", layoutLease, layoutShedlock)
		shed = readShedParams(p)
	})
	switch {
	case err != nil:
		return nil, err
	case layout == layoutShedlock:
		return openShedlockURL(ctx, u, p, opts, shed, create)
	case !shed.none():
		return nil, driver.Rejectedf("", "the store's URL: table, columns and zone are parameters of layout=shedlock")
	}
	if create {
		if _, err := initSchema(ctx, p); err != nil {
			return nil, err
		}
	}
	s, err := openTable(ctx, p, opts)
	if err != nil {
		return nil, err // not s: a nil *Table is no nil driver.Store
	}
	return s, nil
}

// openShedlockURL opens postgres://user@host/database?layout=shedlock.
func openShedlockURL(ctx context.Context, u *url.URL, p *params, opts TableOptions, shed shedParams, create bool) (driver.Store, error) {
	if opts.Journal {
		return nil, driver.Rejectedf("", "the store's URL: ShedLock's table has no journal")
	}
	table, err := p.shedlock(u, shed)
	if err != nil {
		return nil, err
	}
	if create {
		if _, err := table.make(ctx, p); err != nil {
			return nil, err
		}
	}
	s, err := openShedlock(ctx, p, table)
	if err != nil {
		return nil, err
	}
	return s, nil
}
