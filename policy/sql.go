package policy

import "strings"

// SQLFunctions are the functions of pg_catalog that a statement may call, by
// name: pure, or reading no more than the tables that the login may read. What
// reads files, sleeps, locks, signals, writes, changes settings or runs SQL from a
// string is not among them.
var SQLFunctions = set(`
abs acos acosd acosh age any_value area array_agg array_append array_cat array_dims array_fill array_length array_lower array_ndims array_position array_positions
array_prepend array_remove array_replace array_sample array_shuffle array_to_json array_to_string array_to_tsvector array_upper ascii asin asind asinh atan atan2 atan2d atand atanh avg
bit_and bit_count bit_length bit_or bit_xor bool bool_and bool_or box broadcast btrim cardinality cbrt ceil ceiling center char_length character_length chr circle coalesce concat concat_ws
convert convert_from convert_to corr cos cosd cosh cot cotd count covar_pop covar_samp cume_dist current_catalog current_database current_role current_schema current_schemas current_user
date date_add date_bin date_part date_subtract date_trunc daterange datemultirange decode degrees dense_rank diagonal diameter div encode every exp extract factorial family first_value float4 float8 floor format format_type
gcd generate_series generate_subscripts get_bit get_byte greatest grouping has_column_privilege has_schema_privilege has_table_privilege height host hostmask
initcap inet_merge inet_same_family int2 int4 int4multirange int4range int8 int8multirange int8range interval isclosed isempty isfinite isopen
json_agg json_array_elements json_array_elements_text json_array_length json_build_array json_build_object json_each json_each_text json_extract_path json_extract_path_text json_object json_object_agg
json_object_keys json_populate_record json_populate_recordset json_strip_nulls json_to_record json_to_recordset json_typeof
jsonb_agg jsonb_array_elements jsonb_array_elements_text jsonb_array_length jsonb_build_array jsonb_build_object jsonb_each jsonb_each_text jsonb_extract_path jsonb_extract_path_text jsonb_insert jsonb_object
jsonb_object_agg jsonb_object_keys jsonb_path_exists jsonb_path_exists_tz jsonb_path_match jsonb_path_match_tz jsonb_path_query jsonb_path_query_array jsonb_path_query_array_tz jsonb_path_query_first
jsonb_path_query_first_tz jsonb_path_query_tz jsonb_populate_record jsonb_populate_recordset jsonb_pretty jsonb_set jsonb_set_lax jsonb_strip_nulls jsonb_to_record jsonb_to_recordset jsonb_typeof
justify_days justify_hours justify_interval lag last_value lcm lead least left length line ln localtime localtimestamp log log10 lower lower_inc lower_inf lpad lseg ltrim
macaddr8_set7bit make_date make_interval make_time make_timestamp make_timestamptz masklen max md5 min min_scale mod mode multirange netmask network normalize now nth_value ntile nullif num_nonnulls num_nulls numeric numnode nummultirange numrange
obj_description col_description octet_length overlay parse_ident path pclose percent_rank percentile_cont percentile_disc phraseto_tsquery pi plainto_tsquery point polygon popen position power
pg_column_size pg_get_constraintdef pg_get_expr pg_get_indexdef pg_get_viewdef pg_table_is_visible pg_type_is_visible pg_typeof pg_relation_size pg_table_size pg_total_relation_size pg_size_pretty pg_indexes_size pg_database_size
querytree quote_ident quote_literal quote_nullable radians radius random range_agg range_intersect_agg range_merge rank regexp_count regexp_instr regexp_like regexp_match regexp_matches regexp_replace regexp_split_to_array
regexp_split_to_table regexp_substr regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy repeat replace reverse right round row_number row_to_json rpad rtrim
scale session_user set_bit set_byte set_masklen setseed_none setweight sha224 sha256 sha384 sha512 sign similar_to_escape sin sind sinh slope split_part sqrt starts_with statement_timestamp stddev stddev_pop stddev_samp string_agg string_to_array
string_to_table strip strpos substr substring substring_index sum tan tand tanh text timestamp timestamptz timezone to_ascii to_char to_date to_hex to_json to_jsonb to_number to_regclass to_regtype to_timestamp to_tsquery to_tsvector transaction_timestamp clock_timestamp
translate trim trim_array trim_scale trunc ts_delete ts_filter ts_headline ts_lexize ts_rank ts_rank_cd ts_rewrite_none tsmultirange tsquery_phrase tsrange tstzmultirange tstzrange tsvector_to_array unaccent unistr unnest upper upper_inc upper_inf user
gen_random_uuid var_pop var_samp variance version websearch_to_tsquery width width_bucket xmlagg hashtext like_escape timeofday bpchar varchar dexp dlog1 dlog10 dpow dsqrt overlaps like notlike pg_collation_for xmlconcat
`)

// SQLTypes are the types that a value may be cast to.
var SQLTypes = set(`
bool boolean int2 int4 int8 int integer bigint smallint float4 float8 real numeric decimal text varchar bpchar char name bytea date time timetz timestamp timestamptz interval uuid json jsonb jsonpath xml
inet cidr macaddr macaddr8 bit varbit money point line lseg box path polygon circle tsvector tsquery oid regclass regtype regnamespace int4range int8range numrange tsrange tstzrange daterange
int4multirange int8multirange nummultirange tsmultirange tstzmultirange datemultirange record unknown
`)

// SQLHiddenRelations show what others do on the same server.
var SQLHiddenRelations = set(`
pg_stat_activity pg_stat_statements pg_stat_ssl pg_stat_gssapi pg_stat_replication pg_stat_wal_receiver pg_locks pg_prepared_statements pg_prepared_xacts pg_cursors pg_settings pg_file_settings pg_hba_file_rules
pg_authid pg_shadow pg_user pg_roles pg_auth_members pg_largeobject pg_largeobject_metadata pg_statistic pg_stats pg_stats_ext pg_user_mapping pg_user_mappings pg_foreign_server pg_subscription pg_config pg_backend_memory_contexts pg_shmem_allocations
`)

func set(words string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(words) {
		out[w] = true
	}
	return out
}
