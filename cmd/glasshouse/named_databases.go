package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/embedded"
	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/service/database"
)

// databaseName matches the name of a database.
var databaseName = regexp.MustCompile(fmt.Sprintf(`^[a-z][a-z0-9_-]{0,%d}$`, sandbox.MaxDatabaseName-1))

// namedURL is the URL of a database with a name.
type namedURL struct{ name, url string }

// cutNamedURL splits NAME=URL. A connection string of keywords and values, such as host=db, is not a NAME=URL.
func cutNamedURL(text string) (n namedURL, ok bool) {
	n.name, n.url, ok = strings.Cut(text, "=")
	isURL := strings.HasPrefix(n.url, "postgres://") || strings.HasPrefix(n.url, "postgresql://")
	return n, ok && isURL && databaseName.MatchString(n.name)
}

// databaseURLs is the value of --database: the databases in addition to the default one, in the order in which they
// were given.
type databaseURLs struct {
	list   []namedURL
	chosen string // given without a URL: the database that a command is about

	isOfService bool // chosen is a database of the service that a command calls, whose settings are elsewhere
}

// databaseOfService is the annotation of a command whose --database names a database of the service that it calls.
const databaseOfService = "database-of-service"

// Type returns the placeholder for the flag's value in the help.
func (d *databaseURLs) Type() string { return "NAME=URL" }

func (d *databaseURLs) String() string { return "" } // no help or log must show a password

// Set adds databases that are separated by white space, which a URL does not have. One that has a URL already gets
// another.
func (d *databaseURLs) Set(text string) error {
	for _, item := range strings.Fields(text) {
		if databaseName.MatchString(item) {
			d.chosen = item
			continue
		}
		n, ok := cutNamedURL(item)
		if !ok {
			name, _, _ := strings.Cut(item, "=") // the rest may have a password
			return fmt.Errorf("%q must be NAME=URL: a name of at most %d characters a-z, 0-9, - and _ that begins "+
				"with a letter, and a URL that begins with postgres://", name+"=...", sandbox.MaxDatabaseName)
		}
		if n.name == sandbox.DefaultDatabase {
			return fmt.Errorf("%q is the name of the default database: set its URL with --knowledge-url", n.name)
		}
		d.list = slices.DeleteFunc(d.list, func(known namedURL) bool { return known.name == n.name })
		d.list = append(d.list, n)
	}
	return nil
}

// writerURLs is the value of --writer-url: the URL of the writing login by the name of its database.
type writerURLs map[string]string

// Type returns the placeholder for the flag's value in the help.
func (w *writerURLs) Type() string { return "URL" }

func (w *writerURLs) String() string { return "" }

// Set sets the URLs of a list that is separated by white space: NAME=URL, or URL for the default database.
func (w *writerURLs) Set(text string) error {
	if *w == nil {
		*w = writerURLs{}
	}
	isList := false
	for _, item := range strings.Fields(text) {
		if n, ok := cutNamedURL(item); ok {
			(*w)[n.name], isList = n.url, true
		} else if strings.Contains(item, "://") {
			(*w)[sandbox.DefaultDatabase], isList = item, true
		}
	}
	if !isList { // keywords and values
		(*w)[sandbox.DefaultDatabase] = text
	}
	return nil
}

// queryLimit is the value of --max-queries and its like: a number for each database, and those of databases with a
// number of their own.
type queryLimit struct {
	each  int
	named map[string]int
}

// Type returns the placeholder for the flag's value in the help.
func (q *queryLimit) Type() string { return "NUMBER" }

func (q *queryLimit) String() string {
	list := []string{strconv.Itoa(q.each)}
	for _, name := range slices.Sorted(maps.Keys(q.named)) {
		list = append(list, fmt.Sprintf("%s:%d", name, q.named[name]))
	}
	return strings.Join(list, ",")
}

// Set sets the numbers of a comma-separated list of NUMBER and NAME:NUMBER.
func (q *queryLimit) Set(text string) error {
	for item := range strings.SplitSeq(text, ",") {
		name, number, isNamed := strings.Cut(item, ":")
		if !isNamed {
			number = item
		}
		n, err := strconv.Atoi(strings.TrimSpace(number))
		if err != nil {
			return fmt.Errorf("%q must be a number, or NAME:NUMBER for one database", item)
		}
		if !isNamed {
			q.each = n
			continue
		}
		if q.named == nil {
			q.named = map[string]int{}
		}
		q.named[strings.TrimSpace(name)] = n
	}
	return nil
}

// of returns the number of the database with a name.
func (q *queryLimit) of(name string) int {
	if n, ok := q.named[name]; ok {
		return n
	}
	return q.each
}

// least returns the smallest of the numbers.
func (q *queryLimit) least() int {
	return slices.Min(append(slices.Collect(maps.Values(q.named)), q.each))
}

// names returns the names of all databases, the default one first.
func (s *databaseSettings) names() []string {
	names := []string{sandbox.DefaultDatabase}
	for _, n := range s.named.list {
		names = append(names, n.name)
	}
	return names
}

// itemsOf returns the items of a list for the database with a name, which NAME: may precede. An item without a name is
// for the default database.
func (s *databaseSettings) itemsOf(list []string, name string) (items []string) {
	for _, item := range list {
		of, rest, isNamed := strings.Cut(item, ":")
		if !isNamed {
			of, rest = sandbox.DefaultDatabase, item
		}
		if of == name {
			items = append(items, rest)
		}
	}
	return items
}

// checkNames refuses a setting for a database that there is not.
func (s *settings) checkNames() error {
	known := s.databases.names()
	check := func(flag, name string) error {
		if slices.Contains(known, name) {
			return nil
		}
		return fmt.Errorf("--%s (%s): there is no database %q; the databases are %s: add another with --database "+
			"NAME=URL", flag, environmentName(flag), name, strings.Join(known, ", "))
	}
	var errs []error
	for flag, list := range map[string][]string{
		"mask-columns": splitList(s.databases.maskColumns), "allow-views": splitList(s.databases.allowViews),
		"allow-functions": s.databases.functions(),
	} {
		for _, item := range list {
			if name, _, isNamed := strings.Cut(item, ":"); isNamed {
				errs = append(errs, check(flag, name))
			}
		}
	}
	for _, name := range splitList(s.databases.serverCheck) {
		errs = append(errs, check("server-check", name))
	}
	for name := range s.databases.writers {
		errs = append(errs, check("writer-url", name))
	}
	for flag, limit := range map[string]queryLimit{
		"max-queries": s.limits.queries, "max-queries-per-user": s.limits.queriesPerUser,
	} {
		for name := range limit.named {
			errs = append(errs, check(flag, name))
		}
	}
	if s.databases.named.chosen != "" && !s.databases.named.isOfService {
		errs = append(errs, check("database", s.databases.named.chosen))
	}
	return errors.Join(errs...)
}

// readerConfig returns the configuration of a reader of the database with a name, without limits.
func (s *settings) readerConfig(name, url string) dbaccess.Config {
	return dbaccess.Config{
		Name: name, URL: url,
		AllowFunctions: s.databases.itemsOf(s.databases.functions(), name),
		MaskColumns:    s.databases.itemsOf(splitList(s.databases.maskColumns), name),
		AllowViews:     s.databases.itemsOf(splitList(s.databases.allowViews), name),
		ServerCheck: slices.Contains(splitList(s.databases.serverCheck), name) ||
			name == sandbox.DefaultDatabase && s.databases.knowledgeURL == "",
	}
}

// chosenDatabase returns the name of the database that a command is about, and its URL, which is dsn unless that is "".
// It makes the embedded demo run if that is the database; the caller calls stop.
func (s *settings) chosenDatabase(ctx context.Context, dsn string) (name, url string, stop func(), err error) {
	name, url, stop = sandbox.DefaultDatabase, s.databases.knowledgeURL, func() {}
	for _, n := range s.databases.named.list {
		if n.name == s.databases.named.chosen {
			name, url = n.name, n.url
		}
	}
	if dsn != "" {
		return name, dsn, stop, nil
	}
	if url == "" {
		if stop, err = s.ensureEmbedded(ctx); err != nil {
			return name, "", nil, err
		}
		if url, err = embedded.URL(s.server.dataDir, embedded.RoleReader, embedded.DatabaseKnowledge); err != nil {
			stop()
			return name, "", nil, err
		}
	}
	return name, url, stop, nil
}

// queriesPerSandbox is how many statements one sandbox runs on a database at a time: enough for code that gathers a
// few, and half of a user's by default, so that two sandboxes of a user do not wait for each other.
const queriesPerSandbox = 4

// maxResultBytes bounds the memory that the results of a user take at a time: three of the largest result, or one of
// the largest with its encoding and a second one.
const maxResultBytes = 192 << 20

// openReaders opens the readers of all databases, and audits their logins. knowledge has the URL of the default one.
func (a *app) openReaders(ctx context.Context, s settings, knowledgeURL string) error {
	a.parsers, a.results = dbaccess.NewParsers(a.users), limit.NewResults(maxResultBytes)
	for _, n := range append([]namedURL{{sandbox.DefaultDatabase, knowledgeURL}}, s.databases.named.list...) {
		config := s.readerConfig(n.name, n.url)
		config.Parsers, config.Checked, config.Users = a.parsers, a.metrics.QueryChecked, a.users
		config.Share, config.Results = a.share, a.results
		config.WriterURL = s.databases.writers[n.name]
		config.MaxConns = int32(s.limits.queries.of(n.name))
		config.PerUser, config.PerSandbox = s.limits.queriesPerUser.of(n.name), queriesPerSandbox
		if n.name == sandbox.DefaultDatabase && s.databases.knowledgeURL == "" {
			config.CPUTime = a.postgres.CPUTime
		}
		config.NeedsAudit = true
		config.Audited = func(err error) {
			if err != nil {
				a.log.Warnf("the database %q is not used: %v", n.name, withCause(err))
			} else {
				a.log.Infof("the database %q answers, and its login can only read", n.name)
			}
		}
		config.Overdue = func(o dbaccess.Overdue) {
			log := a.log.WithFields(logrus.Fields{"database": n.name, "user": o.User, "process": o.PID})
			if o.HasEnded {
				log.Infof("a cancelled statement has ended after %s", o.Took.Round(time.Second))
			} else {
				log.Warn("PostgreSQL still runs a statement that was cancelled, because it cannot interrupt what the " +
					"statement does; the statement counts against --max-queries-per-user until it ends")
			}
		}
		reader, err := dbaccess.Open(ctx, config)
		if err != nil {
			return fmt.Errorf("database %q: %w", n.name, err)
		}
		a.readers = append(a.readers, reader)
		a.opened = append(a.opened, database.Database{Name: n.name, Reader: reader, Writer: reader})
	}
	return a.auditLogins(ctx)
}

// warnOfTrees logs a warning if a database writes its analysis of queries to its log.
func (a *app) warnOfTrees(ctx context.Context, name string, reader *dbaccess.Reader) {
	if logs, err := reader.LogsTrees(ctx); err == nil && logs {
		a.log.Warnf("the database %q: %s", name, treesAreLogged)
	}
}

// logMasks says which masked columns PostgreSQL keeps from the login and which rest on the service.
func (a *app) logMasks(ctx context.Context, name string, reader *dbaccess.Reader) {
	masks, err := reader.LoginMasks(ctx)
	if err != nil {
		a.log.WithError(err).Warnf("the database %q: which masked columns its login may read is not known", name)
	} else if text := masks.String(); text != "" {
		a.log.Infof("masked columns of the database %q: %s", name, text)
	}
}

const treesAreLogged = "--server-check makes PostgreSQL write about 10 KB to its log for each query, because " +
	"the login lacks log_min_messages = fatal; `glasshouse role-sql --server-check` prints how to set it"

// startAuditTimeout bounds the audit of a login at the start.
const startAuditTimeout = 15 * time.Second

// auditLogins returns an error if a login can do more than read, or if no database answers. A database that does not
// answer is audited when it is used.
func (a *app) auditLogins(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startAuditTimeout)
	defer cancel()
	outcomes := make([]error, len(a.readers))
	var audits sync.WaitGroup
	for i, reader := range a.readers {
		audits.Go(func() { outcomes[i] = reader.AuditLogin(ctx) })
	}
	audits.Wait()
	var refused, unreachable []error
	for i, err := range outcomes {
		if err == nil {
			continue
		}
		named := fmt.Errorf("database %q: %w", a.opened[i].Name, withCause(err))
		if isUnreachable(err) {
			unreachable = append(unreachable, named)
		} else {
			refused = append(refused, named)
		}
	}
	if len(refused) > 0 || len(unreachable) == len(outcomes) {
		return errors.Join(append(refused, unreachable...)...)
	}
	for i, reader := range a.readers {
		if outcomes[i] == nil {
			a.warnOfTrees(ctx, a.opened[i].Name, reader)
			a.logMasks(ctx, a.opened[i].Name, reader)
		}
	}
	for _, err := range unreachable {
		a.log.Warnf("%v; the other databases are used, and this one as soon as it answers", err)
	}
	return nil
}
