//! A task graph directly on SQLite: the minimum cost of closing a task and unblocking its
//! dependents.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior, params};

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS task(id INTEGER PRIMARY KEY, state TEXT NOT NULL, goal TEXT NOT NULL,
        priority INTEGER NOT NULL, waiting INTEGER NOT NULL DEFAULT 0);
    CREATE TABLE IF NOT EXISTS edge(task INTEGER NOT NULL, needs INTEGER NOT NULL,
        PRIMARY KEY(task, needs)) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS edge_needs ON edge(needs, task);
    CREATE INDEX IF NOT EXISTS task_ready ON task(priority, id) WHERE state = 'ready';
    CREATE TABLE IF NOT EXISTS event(seq INTEGER PRIMARY KEY, at TEXT NOT NULL, type TEXT NOT NULL,
        task INTEGER, data TEXT NOT NULL);";

const EVENT: &str = "INSERT INTO event(at, type, task, data)
    VALUES (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), ?1, ?2, ?3)";

#[derive(Debug)]
pub struct Bare(Connection);

impl Bare {
    /// Opens the file with WAL and full sync, as hookloop does.
    pub fn open(path: &Path) -> Bare {
        let conn = Connection::open(path).unwrap();
        conn.busy_timeout(Duration::from_secs(10)).unwrap();
        conn.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;").unwrap();
        conn.execute_batch(TABLES).unwrap();
        Bare(conn)
    }

    /// Adds `n` tasks; `needs` names the dependencies of each task, which must have a lower number.
    pub fn seed(&mut self, n: i64, needs: impl Fn(i64) -> Vec<i64>) {
        let transaction = self.0.transaction().unwrap();
        for id in 1..=n {
            let needs = needs(id);
            let state = if needs.is_empty() { "ready" } else { "created" };
            transaction
                .prepare_cached("INSERT INTO task VALUES (?1, ?2, ?3, ?4, ?5)")
                .unwrap()
                .execute(params![
                    id,
                    state,
                    format!("task number {id}"),
                    id % 5,
                    needs.len() as i64
                ])
                .unwrap();
            for need in needs {
                let insert = "INSERT INTO edge VALUES (?1, ?2)";
                transaction.prepare_cached(insert).unwrap().execute([id, need]).unwrap();
            }
            transaction
                .prepare_cached(EVENT)
                .unwrap()
                .execute(params!["task_created", id, "{}"])
                .unwrap();
        }
        transaction.commit().unwrap();
    }

    pub fn create(&mut self, goal: &str) -> i64 {
        let transaction = self.0.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        let insert = "INSERT INTO task(state, goal, priority) VALUES ('ready', ?1, 2)";
        transaction.prepare_cached(insert).unwrap().execute([goal]).unwrap();
        let id = transaction.last_insert_rowid();
        let data = serde_json::json!({ "goal": goal }).to_string();
        let event = params!["task_created", id, data];
        transaction.prepare_cached(EVENT).unwrap().execute(event).unwrap();
        transaction.commit().unwrap();
        id
    }

    /// Completes a task and marks every dependent as ready if this was its last open dependency.
    pub fn close(&mut self, id: i64) -> Vec<i64> {
        let transaction = self.0.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        let run = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
            transaction.prepare_cached(sql).unwrap().execute(values).unwrap()
        };
        run("UPDATE task SET state = 'completed' WHERE id = ?1", &[&id]);
        run(EVENT, &[&"task_completed", &id, &r#"{"result":"ok"}"#]);
        run(
            "UPDATE task SET waiting = waiting - 1
             WHERE id IN (SELECT task FROM edge WHERE needs = ?1)",
            &[&id],
        );
        let ready = "UPDATE task SET state = 'ready' WHERE state = 'created' AND waiting = 0
             AND id IN (SELECT task FROM edge WHERE needs = ?1) RETURNING id";
        let ready: Vec<i64> = transaction
            .prepare_cached(ready)
            .unwrap()
            .query_map([id], |row| row.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        for dependent in &ready {
            let data = format!(r#"{{"completedTaskId":{id}}}"#);
            run(EVENT, &[&"dependency_satisfied", dependent, &data]);
        }
        transaction.commit().unwrap();
        ready
    }

    pub fn ready(&self, limit: i64) -> Vec<(i64, String)> {
        let select =
            "SELECT id, goal FROM task WHERE state = 'ready' ORDER BY priority, id LIMIT ?1";
        let mut select = self.0.prepare_cached(select).unwrap();
        let rows = select.query_map([limit], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.map(Result::unwrap).collect()
    }
}
