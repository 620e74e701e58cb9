//! Outputs of builds, continuous integration, git history, tracing and load tests.

use super::rng::Rng;
use super::vfs::Vfs;
use std::fmt::Write;

fn lines(extra: &[&str]) -> String {
    extra.iter().map(|line| format!("{line}\n")).collect()
}

pub fn build(vfs: &Vfs, rng: &mut Rng, extra: &[&str]) -> String {
    let mut out = String::from(
        "> harbor-shop@ build\n> tsc -p tsconfig.build.json && node scripts/copy-assets.mjs\n\n",
    );
    for (path, text) in vfs.files.iter().filter(|(path, _)| path.starts_with("src/")) {
        let target = path.replacen("src/", "dist/", 1).replace(".ts", ".js");
        let _ = writeln!(
            out,
            "{target:<52} {:>4}.{} kB │ map {}.{} kB",
            text.len() / 1000,
            rng.range(1, 9),
            text.len() / 400,
            rng.range(1, 9)
        );
    }
    out + &lines(extra)
}

/// A log of the build server; `extra` is what the failing or interesting step printed.
pub fn ci(vfs: &Vfs, rng: &mut Rng, count: usize, extra: &[&str]) -> String {
    let mut at = rng.range(30_000, 50_000);
    let mut out = String::new();
    let mut stamp = |rng: &mut Rng| {
        at += rng.range(0, 4);
        format!("{:02}:{:02}:{:02}.{:04}Z", at / 3600, at / 60 % 60, at % 60, rng.range(0, 9999))
    };
    let _ = writeln!(out, "{} ##[group]Prepare runner hs-ci-{}", stamp(rng), rng.range(1, 9));
    for index in 0..count {
        let entity = &vfs.entities[index % vfs.entities.len()];
        let time = stamp(rng);
        let _ = match index * 4 / count {
            0 => writeln!(
                out,
                "{time} npm http fetch GET 200 registry/{}-{} {}ms (cache {})",
                rng.pick(&["zod", "pg", "pino", "vite", "acorn", "semver", "undici"]),
                rng.id(5),
                rng.range(3, 400),
                rng.pick(&["hit", "miss", "stale"])
            ),
            1 => writeln!(
                out,
                "{time} migrate: {} applied in {}ms (lock waited {}ms)",
                entity.table,
                rng.range(4, 300),
                rng.range(0, 20)
            ),
            2 => writeln!(
                out,
                "{time}  ✓ tests/{0}/{1}.service.test.ts {2}ms heap {3} MB",
                entity.folder(),
                entity.name.replace('_', "-"),
                rng.range(20, 900),
                rng.range(90, 300)
            ),
            _ => writeln!(
                out,
                "{time}  ✓ tests/http/{}.http.test.ts worker {} {}ms",
                entity.name.replace('_', "-"),
                rng.range(1, 5),
                rng.range(200, 4_000)
            ),
        };
    }
    for line in extra {
        let _ = writeln!(out, "{} {line}", stamp(rng));
    }
    out
}

pub fn git_log(vfs: &Vfs, rng: &mut Rng, count: usize, extra: &[&str]) -> String {
    let mut out = lines(extra);
    for index in 0..count {
        let entity = &vfs.entities[(rng.next() % vfs.entities.len() as u64) as usize];
        let verb =
            entity.verbs[(rng.next() % entity.verbs.len() as u64) as usize].replace('_', " ");
        let label = entity.name.replace('_', " ");
        let subject = match rng.range(0, 5) {
            0 => format!("Let support {verb} a {label} with a reason"),
            1 => format!("Publish {label} events after the commit"),
            2 => format!("Cover {verb} of a {label} by a test"),
            3 => format!("Move {label} queries into the repository"),
            _ => format!("Check the role before {verb} ({label})"),
        };
        let _ = writeln!(
            out,
            "{} {} {} {subject} [HS-{}]",
            rng.hex(8),
            format_args!("2025-03-{:02}", 17 - (index * 16 / count.max(1))),
            rng.pick(&["Jonas", "Priya", "Malin", "Okan", "Tess"]),
            rng.range(1800, 2290)
        );
    }
    out
}

/// Spans of one trace, indented by depth.
pub fn spans(vfs: &Vfs, rng: &mut Rng, count: usize, extra: &[&str]) -> String {
    let mut out = format!("trace {} service=shop-api\n", rng.hex(16));
    let mut start = 0;
    for index in 0..count {
        let entity = &vfs.entities[(rng.next() % vfs.entities.len() as u64) as usize];
        let depth = if index == 0 { 0 } else { rng.range(1, 5) as usize };
        start += rng.range(0, 9);
        let name = match rng.range(0, 4) {
            0 => format!("pg.query SELECT {}", entity.table),
            1 => format!("redis.get {}:{}", entity.prefix(), rng.id(6)),
            2 => format!("{}.{}", entity.name, entity.verbs[0]),
            _ => "json.serialize".to_owned(),
        };
        let _ = writeln!(
            out,
            "{}+{start}ms {name} {}ms span={}",
            "  ".repeat(depth),
            rng.range(1, 40),
            rng.hex(8)
        );
    }
    out + &lines(extra)
}

/// Table of a load test, one line per second.
pub fn load(rng: &mut Rng, seconds: usize, extra: &[&str]) -> String {
    let mut out = String::from(" sec | req/s | p50 ms | p90 ms | p99 ms | 2xx | 4xx | 5xx\n");
    for second in 1..=seconds {
        let rate = rng.range(380, 520);
        let _ = writeln!(
            out,
            " {second:>3} | {rate} | {} | {} | {} | {} | {} | {}",
            rng.range(9, 19),
            rng.range(30, 70),
            rng.range(90, 400),
            rate - 3,
            rng.range(0, 3),
            rng.range(0, 2)
        );
    }
    out + &lines(extra)
}
