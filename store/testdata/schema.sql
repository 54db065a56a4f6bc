-- Describes the schema in lines of text. Bodies of functions are named by a digest, because they stand in a file
-- each; comments and spaces in them don't count. Of rows that the migrations write, moments are left out.
WITH here AS (SELECT current_schema()::regnamespace AS ns),
tables AS (
    SELECT c.oid, c.relname AS name, c.relkind, c.reloptions FROM pg_class c, here
    WHERE c.relnamespace = here.ns AND c.relkind IN ('r', 'v', 'm', 'p') AND c.relname <> 'goose_db_version'
        AND NOT c.relispartition -- a part is as its whole, and a test compares the two
),
bodies AS (
    SELECT p.*, regexp_replace(regexp_replace(p.prosrc, '--[^\n]*', '', 'g'), '\s+', ' ', 'g') AS body
    FROM pg_proc p, here WHERE p.pronamespace = here.ns
        AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
),
rights AS ( -- of a table, or of columns of it
    SELECT t.name, a.grantee, a.privilege_type, NULL::text AS columns
    FROM tables t JOIN pg_class c ON c.oid = t.oid, aclexplode(c.relacl) a WHERE a.grantee <> c.relowner
    UNION ALL
    SELECT t.name, a.grantee, a.privilege_type, string_agg(g.attname, ', ' ORDER BY g.attname)
    FROM tables t JOIN pg_attribute g ON g.attrelid = t.oid AND g.attnum > 0, aclexplode(g.attacl) a GROUP BY 1, 2, 3
),
lines (section, line) AS (
    SELECT 1, 'extension ' || extname FROM pg_extension WHERE extname <> 'plpgsql'
    UNION ALL
    SELECT 2, 'domain ' || t.typname || ' ' || format_type(t.typbasetype, t.typtypmod) || coalesce((SELECT string_agg(' ' || c.conname || ' ' ||
            pg_get_constraintdef(c.oid), '' ORDER BY c.conname) FROM pg_constraint c WHERE c.contypid = t.oid), '')
    FROM pg_type t, here WHERE t.typnamespace = here.ns AND t.typtype = 'd'
    UNION ALL
    SELECT 3, 'sequence ' || c.relname FROM pg_class c, here WHERE c.relnamespace = here.ns AND c.relkind = 'S' AND c.relname NOT LIKE 'goose%'
    UNION ALL
    SELECT 4, 'table ' || t.name || ': ' || CASE t.relkind WHEN 'r' THEN '' ELSE 'kind ' || t.relkind::text || ' ' END || g.attname || ' ' || format_type(g.atttypid, g.atttypmod)
        || CASE WHEN g.attnotnull THEN ' not null' ELSE '' END
        || CASE g.attidentity WHEN 'a' THEN ' always identity' WHEN 'd' THEN ' identity' ELSE '' END
        || coalesce(CASE g.attgenerated WHEN 's' THEN ' generated ' ELSE ' default ' END || pg_get_expr(d.adbin, d.adrelid), '')
    FROM tables t JOIN pg_attribute g ON g.attrelid = t.oid AND g.attnum > 0 AND NOT g.attisdropped
        LEFT JOIN pg_attrdef d ON d.adrelid = t.oid AND d.adnum = g.attnum
    UNION ALL
    SELECT 4, 'table ' || t.name || ': with ' || array_to_string(t.reloptions, ', ') FROM tables t WHERE t.reloptions IS NOT NULL
    UNION ALL
    SELECT 5, 'constraint ' || t.name || '.' || c.conname || ' ' || pg_get_constraintdef(c.oid)
    FROM tables t JOIN pg_constraint c ON c.conrelid = t.oid WHERE c.contype IN ('c', 'f', 'p', 'u', 'x')
    UNION ALL
    SELECT 6, 'index ' || replace(pg_get_indexdef(i.indexrelid), ' ON ' || current_schema() || '.', ' ON ')
    FROM tables t JOIN pg_index i ON i.indrelid = t.oid
    WHERE NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid AND c.contype IN ('p', 'u'))
    UNION ALL
    SELECT 7, 'trigger ' || t.name || '.' || g.tgname || regexp_replace(replace(replace(pg_get_triggerdef(g.oid), current_schema() || '.', ''), ' ON ' || t.name, ''),
            '^CREATE (CONSTRAINT )?TRIGGER \S+', CASE WHEN g.tgconstraint <> 0 THEN ' CONSTRAINT' ELSE '' END)
        || CASE g.tgenabled WHEN 'O' THEN '' ELSE ' enabled ' || g.tgenabled::text END
    FROM tables t JOIN pg_trigger g ON g.tgrelid = t.oid WHERE NOT g.tgisinternal
    UNION ALL
    SELECT 8, p.proname || '(' || pg_get_function_arguments(p.oid) || ') ' || CASE p.prokind WHEN 'p' THEN 'procedure' ELSE 'returns ' || pg_get_function_result(p.oid) END
        || ' ' || l.lanname || ' ' || p.provolatile::text || CASE WHEN p.prosecdef THEN ' definer' ELSE '' END || CASE WHEN p.proisstrict THEN ' strict' ELSE '' END
        || CASE p.proparallel WHEN 's' THEN ' parallel' ELSE '' END || coalesce(' set ' || array_to_string(p.proconfig, ', '), '')
        || CASE WHEN p.proacl IS NULL THEN '' ELSE ' ' || p.proacl::text END || ' ' || left(md5(btrim(p.body)), 12)
    FROM bodies p JOIN pg_language l ON l.oid = p.prolang
    UNION ALL
    SELECT 9, 'grant ' || r.name || ' to ' || coalesce(o.rolname, 'public') || ': ' || string_agg(lower(r.privilege_type) || coalesce(' (' || r.columns || ')', ''), ', '
            ORDER BY r.privilege_type, r.columns NULLS FIRST)
    FROM rights r LEFT JOIN pg_roles o ON o.oid = r.grantee GROUP BY r.name, o.rolname
    UNION ALL
    SELECT 9, 'grant schema to ' || coalesce(o.rolname, 'public') || ': ' || lower(a.privilege_type)
    FROM here JOIN pg_namespace n ON n.oid = here.ns, aclexplode(n.nspacl) a LEFT JOIN pg_roles o ON o.oid = a.grantee WHERE a.grantee NOT IN (n.nspowner, 0)
    UNION ALL
    SELECT 10, 'moves ' || machine || ': ' || from_state || ' > ' || string_agg(to_state, ', ' ORDER BY to_state)
    FROM state_transitions GROUP BY machine, from_state
    UNION ALL
    SELECT 11, 'row of ' || t.name || ': ' || (x.row - ARRAY['created_at', 'updated_at', 'set_at', 'standing_since'])::text
    FROM tables t, LATERAL (SELECT ('<all>' || query_to_xml('SELECT to_jsonb(x)::text AS r FROM ' || quote_ident(t.name) || ' x', true, true, '')::text || '</all>')::xml AS doc) d,
        LATERAL (SELECT unnest(xpath('//*[local-name() = "r"]/text()', d.doc))::text AS escaped) e,
        LATERAL (SELECT replace(replace(replace(replace(e.escaped, '&quot;', '"'), '&lt;', '<'), '&gt;', '>'), '&amp;', '&')::jsonb AS row) x
    WHERE t.name NOT IN ('state_transitions', 'schema_code', 'months')
)
SELECT regexp_replace(line, '\s+', ' ', 'g') FROM lines ORDER BY section, line COLLATE "C"
