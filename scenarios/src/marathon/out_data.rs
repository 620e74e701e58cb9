//! Outputs that show data of the shop: logs, rows, JSON, schemas and query plans.

use super::domain::{Entity, Field};
use super::outputs::shown_columns;
use super::rng::Rng;
use super::vfs::Vfs;
use std::fmt::Write;

/// Spreads `extra` evenly over generated lines.
fn interleave(count: usize, extra: &[&str], mut line: impl FnMut(usize) -> String) -> String {
    let mut out = String::new();
    let step = count / (extra.len() + 1) + 1;
    let mut rest = extra.iter();
    for index in 0..count {
        if index > 0
            && index % step == 0
            && let Some(special) = rest.next()
        {
            let _ = writeln!(out, "{special}");
        }
        let _ = writeln!(out, "{}", line(index));
    }
    for special in rest {
        let _ = writeln!(out, "{special}");
    }
    out
}

pub fn log(vfs: &Vfs, rng: &mut Rng, count: usize, extra: &[&str]) -> String {
    let mut at = rng.range(28_000_000, 60_000_000);
    interleave(count, extra, |_| {
        at += rng.range(3, 900);
        let entity = &vfs.entities[(rng.next() % vfs.entities.len() as u64) as usize];
        let verb = &entity.verbs[(rng.next() % entity.verbs.len() as u64) as usize];
        let id = format!("{}_{}", entity.prefix(), rng.id(12));
        let clock = format!(
            "{:02}:{:02}:{:02}.{:03}",
            at / 3_600_000,
            at / 60_000 % 60,
            at / 1000 % 60,
            at % 1000
        );
        let request = rng.hex(8);
        match rng.range(0, 6) {
            0 => format!(
                r#"{clock} DEBUG sql req={request} table={} rows={} ms={}"#,
                entity.table,
                rng.range(0, 60),
                rng.range(1, 40)
            ),
            1 => format!(
                r#"{clock} INFO {} {verb} id={id} actor=staff_{} req={request}"#,
                entity.name,
                rng.range(2, 60)
            ),
            2 => format!(
                r#"{clock} INFO outbox published topic={}.{verb} id={id} lagMs={} req={request}"#,
                entity.name,
                rng.range(2, 300)
            ),
            _ => format!(
                r#"{clock} INFO http {} /{}/{id} status={} ms={} req={request}"#,
                rng.pick(&["GET", "GET", "GET", "POST", "PUT"]),
                entity.folder(),
                rng.pick(&["200", "200", "200", "201", "304", "404", "409"]),
                rng.range(2, 180)
            ),
        }
    })
}

fn value(field: &Field, rng: &mut Rng) -> String {
    match field.kind.as_str() {
        "cents" => rng.range(90, 48_000).to_string(),
        "int" => rng.range(0, 40).to_string(),
        "bool" => rng.pick(&["true", "false"]).to_owned(),
        "date" => format!("2025-{:02}-{:02}", rng.range(1, 12), rng.range(1, 28)),
        "ts" => format!(
            "2025-03-{:02}T{:02}:{:02}:{:02}Z",
            rng.range(10, 18),
            rng.range(0, 24),
            rng.range(0, 60),
            rng.range(0, 60)
        ),
        _ => match field.name.as_str() {
            "currency" => rng.pick(&["EUR", "EUR", "CHF", "DKK"]).to_owned(),
            "sku" => {
                format!(
                    "{}-{}-{}",
                    rng.pick(&["ROPE", "LAMP", "OIL", "KNIT", "MAP"]),
                    rng.range(100, 999),
                    rng.pick(&["S", "M", "L"])
                )
            }
            "city" => rng.pick(&["Kiel", "Husum", "Bremen", "Aarhus", "Ostend"]).to_owned(),
            "carrier" | "provider" => {
                rng.pick(&["nordpost", "parcelo", "quaypay", "swiftcard"]).to_owned()
            }
            name => format!("{}-{}", name.split('_').next().unwrap_or(name), rng.id(6)),
        },
    }
}

fn row(entity: &Entity, rng: &mut Rng) -> Vec<(String, String)> {
    let columns = shown_columns(entity);
    columns
        .into_iter()
        .map(|column| {
            let text = if column == "id" {
                format!("{}_{}", entity.prefix(), rng.id(12))
            } else if column == "state" {
                let states: Vec<&str> = entity.states.iter().map(String::as_str).collect();
                rng.pick(&states).to_owned()
            } else if column == "version" {
                rng.range(1, 14).to_string()
            } else if let Some(field) = entity.fields.iter().find(|field| field.name == column) {
                value(field, rng)
            } else {
                format!("{}_{}", &column[..3], rng.id(12))
            };
            (column, text)
        })
        .collect()
}

pub fn json(entity: &Entity, rng: &mut Rng, count: usize, extra: &[&str]) -> String {
    let body = interleave(count, extra, |_| {
        let members: Vec<String> = row(entity, rng)
            .into_iter()
            .map(|(key, text)| {
                if text.parse::<u64>().is_ok() || text == "true" || text == "false" {
                    format!("\"{key}\": {text}")
                } else {
                    format!("\"{key}\": \"{text}\"")
                }
            })
            .collect();
        format!("  {{{}}},", members.join(", "))
    });
    format!(
        "HTTP/1.1 200 OK\ncontent-type: application/json\n\n{{\"data\": [\n{body}], \"next\": \
         \"{}\"}}",
        rng.id(12)
    )
}

pub fn rows(entity: &Entity, rng: &mut Rng, count: usize, extra: &[&str]) -> String {
    let body = interleave(count, extra, |_| {
        let cells: Vec<String> = row(entity, rng).into_iter().map(|(_, text)| text).collect();
        format!(" {}", cells.join(" | "))
    });
    format!(
        " {}\n{}\n{body}({} rows)",
        shown_columns(entity).join(" | "),
        "-".repeat(60),
        count + extra.len()
    )
}

pub fn schema(entity: &Entity, extra: &[&str]) -> String {
    let mut out = format!(
        "                Table \"public.{}\"\n Column | Type | Nullable | Default\n",
        entity.table
    );
    let _ = writeln!(out, " id | text | not null |");
    for parent in &entity.parents {
        let _ = writeln!(out, " {parent}_id | text | not null |");
    }
    for field in &entity.fields {
        let kind = match field.kind.as_str() {
            "cents" => "bigint",
            "int" => "integer",
            "ts" => "timestamp with time zone",
            "bool" => "boolean",
            other => other,
        };
        let _ = writeln!(out, " {} | {kind} | |", field.name);
    }
    let _ = writeln!(
        out,
        " state | text | not null | '{}'\n version | integer | not null | 1\nIndexes:\n    \
         \"{1}_pkey\" PRIMARY KEY, btree (id)\n    \"{1}_state_updated_idx\" btree (state, \
         updated_at)",
        entity.states[0], entity.table
    );
    for parent in &entity.parents {
        let _ = writeln!(out, "    \"{0}_{parent}_idx\" btree ({parent}_id)", entity.table);
    }
    out + &extra.join("\n")
}

pub fn explain(entity: &Entity, rng: &mut Rng, access: &str, extra: &[&str]) -> String {
    let slow = access == "seq";
    let table = &entity.table;
    let cost = if slow { rng.range(40_000, 90_000) } else { rng.range(20, 400) };
    let millis = if slow { rng.range(700, 4_000) } else { rng.range(1, 9) };
    let rows = rng.range(200, 9_000);
    let scan = if slow {
        format!("Parallel Seq Scan on {table}")
    } else {
        format!("Index Scan using {table}_open_idx on {table}")
    };
    let mut out = format!("                                   QUERY PLAN\n{}\n", "-".repeat(86));
    let _ = writeln!(
        out,
        " Limit  (cost=0.43..{cost}.11 rows=200 width=212) (actual time=0.{:03}..{millis}.{:03} \
         rows=200 loops=1)",
        rng.range(10, 999),
        rng.range(10, 999)
    );
    let _ = writeln!(
        out,
        "   Buffers: shared hit={} read={}",
        rng.range(90, 9_000),
        if slow { rng.range(20_000, 70_000) } else { rng.range(0, 9) }
    );
    let _ = writeln!(
        out,
        "   ->  Nested Loop  (cost=0.43..{cost}.90 rows={rows} width=212) (actual rows=200 loops=1)"
    );
    let _ = writeln!(
        out,
        "         ->  {scan}  (cost=0.43..{cost}.02 rows={rows} width=148) (actual rows={rows} \
         loops=1)"
    );
    let _ = writeln!(out, "               Filter: (state = '{}'::text)", entity.states[0]);
    if slow {
        let _ = writeln!(
            out,
            "               Rows Removed by Filter: {}",
            rng.range(400_000, 4_000_000)
        );
    }
    for parent in &entity.parents {
        let _ = writeln!(
            out,
            "         ->  Memoize  (cost=0.43..0.51 rows=1 width=64) (actual rows=1 \
             loops={rows})\n               Cache Key: {table}.{parent}_id\n               ->  \
             Index Scan using {parent}s_pkey on {parent}s  (cost=0.42..0.50 rows=1 width=64)"
        );
    }
    let _ = writeln!(
        out,
        " Planning Time: 0.{:03} ms\n Execution Time: {millis}.{:03} ms",
        rng.range(100, 999),
        rng.range(10, 999)
    );
    out + &extra.join("\n")
}
