package policy

import (
	_ "embed"
	"strings"
)

//go:embed sqlfunctions.txt
var functionsText string

//go:embed sqloperators.txt
var operatorsText string

// SQLFunctions and SQLOperators are the functions and operators of pg_catalog that a statement may call. They map a
// name to its signatures, such as "(int4,text)"; an operator's left side comes first. The embedded files say how
// they are chosen.
var (
	SQLFunctions = signatures(functionsText)
	SQLOperators = signatures(operatorsText)
)

// SQLExtensions are well-known extensions whose functions, operators and types only compute values.
// SQLExtensionFunctions are the exceptions: functions of these extensions that have an effect or run SQL from a string.
var (
	SQLExtensions = set(
		`btree_gin btree_gist citext cube earthdistance fuzzystrmatch hstore intarray isn ltree pg_trgm postgis seg tablefunc unaccent uuid-ossp vector`,
	)
	SQLExtensionFunctions = set(
		`connectby crosstab crosstab2 crosstab3 crosstab4 crosstabn set_limit isn_weak set_curcfg
populate_geometry_columns updategeometrysrid addgeometrycolumn dropgeometrycolumn dropgeometrytable
lockrow unlockrows addauth checkauth enablelongtransactions disablelongtransactions find_srid postgis_extensions_upgrade postgis_type_name st_estimatedextent st_findextent postgis_cache_bbox st_fromflatgeobuf st_fromflatgeobuftotable`,
	)
)

// SQLTypes are the types of pg_catalog that a value may be cast to.
var SQLTypes = set(`
bool int2 int4 int8 float4 float8 numeric text varchar bpchar char name bytea date time timetz timestamp timestamptz interval uuid json jsonb jsonpath xml
inet cidr macaddr macaddr8 bit varbit money point line lseg box path polygon circle tsvector tsquery oid xid xid8 cid tid pg_lsn pg_snapshot int2vector oidvector unknown record
regclass regtype regnamespace regrole regproc regprocedure regoper regoperator regcollation regconfig regdictionary int4range int8range numrange tsrange tstzrange daterange
int4multirange int8multirange nummultirange tsmultirange tstzmultirange datemultirange
`)

// SQLCatalogRelations are the relations of pg_catalog that a statement may read. They describe the database. Relations
// that show the activity of other users are not among them.
var SQLCatalogRelations = set(`
pg_aggregate pg_am pg_amop pg_amproc pg_attrdef pg_attribute pg_available_extension_versions pg_available_extensions pg_cast pg_class pg_collation pg_constraint pg_conversion pg_database pg_depend pg_description pg_enum
pg_extension pg_foreign_table pg_index pg_indexes pg_inherits pg_language pg_matviews pg_namespace pg_opclass pg_operator pg_opfamily pg_partitioned_table pg_policies pg_policy pg_proc pg_range pg_rewrite pg_rules
pg_sequence pg_sequences pg_shdescription pg_stat_all_indexes pg_stat_all_tables pg_stat_user_indexes pg_stat_user_tables pg_statio_user_indexes pg_statio_user_tables pg_statistic_ext pg_tables
pg_tablespace pg_timezone_abbrevs pg_timezone_names pg_trigger pg_ts_config pg_ts_config_map pg_ts_dict pg_ts_parser pg_ts_template pg_type pg_views
`)

// SQLSettings are the settings that a statement may read with SHOW or current_setting. No statement can change a
// setting.
var SQLSettings = set(`
timezone datestyle intervalstyle server_version server_version_num server_encoding client_encoding search_path statement_timeout lock_timeout transaction_isolation transaction_read_only default_transaction_read_only
lc_collate lc_ctype lc_messages lc_monetary lc_numeric lc_time default_text_search_config standard_conforming_strings bytea_output extra_float_digits integer_datetimes max_identifier_length block_size work_mem
max_parallel_workers_per_gather jit xmlbinary xmloption is_superuser session_authorization
`)

func set(words string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		out[w] = true
	}
	return out
}

// signatures parses lines such as "name (a,b) (c)". Lines that begin with "# " are comments.
func signatures(text string) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 1 && (words[0] != "#" || strings.HasPrefix(words[1], "(")) {
			out[words[0]] = set(strings.Join(words[1:], " "))
		}
	}
	return out
}
