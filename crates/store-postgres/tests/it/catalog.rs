//! Row security as the catalog tells it: whatever table is added later is held to the same rules. S4.

use tokio_postgres::Client;

use crate::support::{database, owner, run};

/// Each query lists what breaks a rule.
const RULES: [(&str, &str); 9] = [
    (
        "a table with a tenant has row security, also for its owner",
        "SELECT c.relname::text FROM pg_class c
         JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
         WHERE c.relnamespace = 'servo'::regnamespace AND c.relkind IN ('r', 'p')
            AND NOT (c.relrowsecurity AND c.relforcerowsecurity)",
    ),
    (
        "it has a policy per role, for reading and for writing, and the tenant's goes by app.tenants",
        "SELECT c.relname::text || ' for ' || role FROM pg_class c
         JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
         CROSS JOIN unnest(ARRAY['servo_app', 'servo_engine']) AS role
         WHERE c.relnamespace = 'servo'::regnamespace AND c.relkind IN ('r', 'p') AND 1 <> (
            SELECT count(*) FROM pg_policies p
            WHERE p.schemaname = 'servo' AND p.tablename = c.relname AND p.roles = ARRAY[role::name] AND p.cmd = 'ALL'
                AND p.qual IS NOT NULL AND p.with_check IS NOT NULL
                AND (role = 'servo_engine' OR (p.qual LIKE '%app.tenants%' AND p.with_check LIKE '%app.tenants%')))",
    ),
    (
        "there is no other policy",
        "SELECT tablename || '.' || policyname FROM pg_policies
         WHERE schemaname = 'servo' AND roles NOT IN (ARRAY['servo_app'::name], ARRAY['servo_engine'::name])",
    ),
    // Ids that are unique across tenants by how they are made: of a run, of a dispatch (it holds the run's), a position.
    (
        "a unique key holds the tenant, or an id that is unique across tenants",
        "SELECT i.indexrelid::regclass::text FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
         JOIN pg_attribute t ON t.attrelid = c.oid AND t.attname = 'tenant_id'
         WHERE c.relnamespace = 'servo'::regnamespace AND i.indisunique AND NOT EXISTS (
            SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum = ANY (i.indkey)
                AND a.attname IN ('tenant_id', 'run_id', 'request_id', 'xid'))",
    ),
    (
        "a reference holds the tenant on both sides",
        "SELECT conname::text FROM pg_constraint k
         WHERE k.connamespace = 'servo'::regnamespace AND k.contype = 'f' AND NOT (
            EXISTS (SELECT FROM pg_attribute a
                WHERE a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey) AND a.attname = 'tenant_id')
            AND EXISTS (SELECT FROM pg_attribute a
                WHERE a.attrelid = k.confrelid AND a.attnum = ANY (k.confkey) AND a.attname = 'tenant_id'))",
    ),
    (
        "the roles own nothing, log in nowhere and pass no policy",
        "SELECT r.rolname::text FROM pg_roles r WHERE r.rolname IN ('servo_app', 'servo_engine') AND (
            r.rolsuper OR r.rolbypassrls OR r.rolcanlogin OR r.rolcreaterole OR r.rolcreatedb
            OR EXISTS (SELECT FROM pg_class c WHERE c.relowner = r.oid)
            OR EXISTS (SELECT FROM pg_auth_members m WHERE m.member = r.oid))",
    ),
    (
        "no function runs with more rights than its caller's",
        "SELECT proname::text FROM pg_proc WHERE pronamespace = 'servo'::regnamespace AND prosecdef",
    ),
    (
        "there are no views, which would be read with their owner's rights",
        "SELECT relname::text FROM pg_class WHERE relnamespace = 'servo'::regnamespace AND relkind IN ('v', 'm')",
    ),
    (
        "tenants' connections change no event and no audit entry, remove no run and no key and do not read the secret",
        "SELECT what FROM (VALUES
            ('servo.events', 'UPDATE'), ('servo.events', 'DELETE'), ('servo.events', 'TRUNCATE'),
            ('servo.blobs', 'UPDATE'), ('servo.blobs', 'DELETE'), ('servo.function_versions', 'UPDATE'), ('servo.runs', 'DELETE'),
            ('servo.audit_log', 'INSERT'), ('servo.audit_log', 'UPDATE'), ('servo.audit_log', 'DELETE'), ('servo.api_keys', 'DELETE'),
            ('servo.secret', 'SELECT'), ('servo.meta', 'UPDATE')) AS v (what, privilege)
         WHERE has_table_privilege('servo_app', what, privilege)",
    ),
];

async fn broken(client: &Client) -> Vec<String> {
    let mut found = Vec::new();
    for (rule, sql) in RULES {
        for row in client.query(sql, &[]).await.unwrap() {
            found.push(format!("{rule}: {}", row.get::<_, String>(0)));
        }
    }
    found
}

#[test]
fn every_table_with_a_tenant_is_guarded() {
    run(async {
        let owner = owner(&database().await).await;
        let tables = "SELECT count(*) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
            WHERE a.attname = 'tenant_id' AND c.relkind = 'r' AND c.relnamespace = 'servo'::regnamespace";
        assert_eq!(
            owner.query_one(tables, &[]).await.unwrap().get::<_, i64>(0),
            19,
            "the rules have something to judge"
        );
        assert_eq!(broken(&owner).await, Vec::<String>::new());
    });
}

/// The control: each rule notices what it is there for.
#[test]
fn each_rule_can_be_broken() {
    run(async {
        let owner = owner(&database().await).await;
        for breach in [
            "ALTER TABLE servo.timers NO FORCE ROW LEVEL SECURITY",
            "ALTER TABLE servo.alerts DISABLE ROW LEVEL SECURITY",
            "DROP POLICY app ON servo.queue",
            "CREATE POLICY anyone ON servo.runs USING (true)",
            "CREATE UNIQUE INDEX careless ON servo.alerts (subject)",
            "ALTER TABLE servo.timers ADD CONSTRAINT careless FOREIGN KEY (run_id) REFERENCES servo.runs (run_id)",
            "CREATE FUNCTION servo.careless() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'",
            "CREATE VIEW servo.careless AS SELECT * FROM servo.runs",
            "GRANT DELETE ON servo.events TO servo_app",
            "GRANT SELECT ON servo.secret TO servo_app",
            "CREATE TABLE servo.careless (tenant_id text)",
        ] {
            owner.batch_execute(&format!("BEGIN; {breach}")).await.unwrap();
            assert!(!broken(&owner).await.is_empty(), "{breach}");
            owner.batch_execute("ROLLBACK").await.unwrap();
        }
        assert_eq!(broken(&owner).await, Vec::<String>::new());
    });
}
