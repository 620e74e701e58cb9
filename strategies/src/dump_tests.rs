//! Temporary.
use crate::descriptor::*;
use crate::own_settings::ValueKind;
use crate::registry::ALL;
use ctxbench_core::settings::{SettingKind, Value};
use std::fmt::Write;

fn s(t: &str) -> String {
    let esc = t.replace('\\', "\\\\").replace('"', "\\\"");
    if t.chars().count() <= 96 {
        return format!("\"{esc}\"");
    }
    let mut lines = vec![String::new()];
    for w in esc.split(' ') {
        let last = lines.last().unwrap();
        if !last.is_empty() && last.chars().count() + w.chars().count() + 3 > 100 {
            lines.push(String::new());
        }
        let last = lines.last_mut().unwrap();
        last.push_str(w);
        last.push(' ');
    }
    let n = lines.len();
    let mut out = String::from("\"\"\"\\\n");
    for (i, l) in lines.iter().enumerate() {
        if i + 1 == n {
            out += &format!("    {}\"\"\"", l.trim_end());
        } else {
            out += &format!("    {l}\\\n");
        }
    }
    out
}

fn list(all: &[&str]) -> String {
    let all: Vec<String> = all.iter().map(|t| format!("\"{t}\"")).collect();
    format!("[{}]", all.join(", "))
}

#[test]
fn dump() {
    let mut plain = String::new();
    for d in ALL {
        let mut o = String::new();
        let _ = writeln!(o, "name = \"{}\"\nsummary = {}", d.name, s(d.summary));
        if d.sources.len() == 1 {
            let _ = writeln!(o, "sources = [{}]", s(d.sources[0]));
        } else {
            let _ = writeln!(o, "sources = [");
            for x in d.sources {
                let _ = writeln!(o, "  {},", s(x));
            }
            let _ = writeln!(o, "]");
        }
        let _ = writeln!(o, "page = \"{}\"", d.page);
        let st = format!("{:?}", d.standing).to_lowercase();
        let _ = writeln!(o, "standing = \"{st}\"");
        match d.color {
            PlotColor::Palette(n) => writeln!(o, "color = {{ palette = {n} }}"),
            PlotColor::Grey { dashed } => writeln!(o, "color = {{ grey = {{ dashed = {dashed} }} }}"),
        }
        .unwrap();
        let m = match d.manual {
            ManualCompaction::Absent => "absent",
            ManualCompaction::Plain => "plain",
            ManualCompaction::WithInstructions => "with-instructions",
        };
        let _ = writeln!(o, "manual = \"{m}\"");
        if d.rewind != Rewind::UNSUPPORTED {
            let mut r = vec![];
            if d.rewind.conversation {
                r.push("conversation = true".to_string());
            }
            match d.rewind.code {
                Some(SnapshotKind::EditTools) => r.push("code = \"edit-tools\"".into()),
                Some(SnapshotKind::ShadowGit) => r.push("code = \"shadow-git\"".into()),
                None => {}
            }
            if d.rewind.summaries {
                r.push("summaries = true".into());
            }
            let _ = writeln!(o, "rewind = {{ {} }}", r.join(", "));
        }
        if !matches!(d.conform, crate::conform::Conformance::Unrecorded) {
            let _ = writeln!(o, "recorded = true");
        }
        match d.files {
            MemoryFiles::None(why) => writeln!(o, "files = {{ none = {} }}", s(why)),
            MemoryFiles::Read { follows, .. } => writeln!(o, "files = {{ read = {{ follows = {follows} }} }}"),
        }
        .unwrap();
        let names = [
            "layers", "llm_calls", "user_messages", "tool_results", "cache", "afterwards",
            "token_counting", "pre_send_check", "overflow_response", "thinking", "memory", "undo",
        ];
        let _ = writeln!(o, "\n[matrix]");
        for (n, (_, v)) in names.iter().zip(d.matrix.rows()) {
            let _ = writeln!(o, "{n} = {}", s(v));
        }
        let versions = d.factory.versions();
        for v in &versions {
            let _ = writeln!(o, "\n[[versions]]\nname = \"{}\"", v.name);
            if v.program != v.name {
                let _ = writeln!(o, "program = \"{}\"", v.program);
            }
            if v.about != "as released" {
                let _ = writeln!(o, "about = {}", s(v.about));
            }
        }
        if let Some(f) = d.settings_file {
            let _ = writeln!(
                o,
                "\n[settings_file]\nfolder = \"{}\"\nnames = {}\nformat = \"{}\"\nplace = \"{}\"\ndocumented = \"{}\"",
                f.folder, list(f.names), format!("{:?}", f.format).to_lowercase(), f.place, f.documented
            );
            let checked: Vec<&str> = f.settings.iter().filter(|k| k.setting.is_empty()).map(|k| k.path[0]).collect();
            if !checked.is_empty() {
                let _ = writeln!(o, "checked = {}", list(&checked));
            }
        }
        for x in d.factory.settings {
            let kind = match x.kind {
                SettingKind::Choice(w) => format!("{{ choice = {} }}", list(w)),
                other => format!("\"{}\"", format!("{other:?}").to_lowercase()),
            };
            let default = match &x.default {
                Value::Word(w) => s(w),
                Value::Real(r) => format!("{r:?}"),
                Value::Int(n) => ctxbench_util::quantity::grouped(*n, '_'),
                v => v.to_string(),
            };
            let _ = writeln!(
                o,
                "\n[[settings]]\nname = \"{}\"\nkind = {kind}\ndefault = {default}\nhelp = {}\nsource = {}",
                x.name, s(x.help), s(x.source)
            );
            let known: Vec<&str> = versions.iter().filter(|v| v.knows(x.name)).map(|v| v.name).collect();
            if known.len() < versions.len() {
                let _ = writeln!(o, "versions = {}", list(&known));
            }
            for k in d.settings_file.iter().flat_map(|f| f.settings).filter(|k| k.setting == x.name) {
                let kind = match k.kind {
                    ValueKind::NumberOr(_) => "number-or-auto".to_string(),
                    other => format!("{other:?}").to_lowercase(),
                };
                let _ = writeln!(o, "[[settings.keys]]\nkey = \"{}\"\nkind = \"{kind}\"", k.path.join("."));
                if !k.values.is_empty() {
                    let _ = writeln!(o, "values = {}", list(k.values));
                }
                if let Some(x) = k.documented {
                    let _ = writeln!(o, "documented = \"{x}\"");
                }
                if !k.caveat.is_empty() {
                    let _ = writeln!(o, "caveat = {}", s(k.caveat));
                }
            }
        }
        std::fs::create_dir_all("/tmp/reg/about").unwrap();
        std::fs::write(format!("/tmp/reg/about/{}.toml", d.name), o).unwrap();
        let _ = writeln!(
            plain,
            "{} {} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {}",
            d.name, d.summary, d.sources, d.matrix, d.standing, d.manual, d.rewind, d.color, (), d.page
        );
        if let MemoryFiles::None(why) = d.files {
            let _ = writeln!(plain, "{why}");
        }
        for v in &versions {
            let _ = writeln!(plain, "{} {} {}", v.name, v.program, v.about);
        }
        for x in d.factory.settings {
            let known: Vec<&str> = versions.iter().filter(|v| v.knows(x.name)).map(|v| v.name).collect();
            let _ = writeln!(plain, "{} {:?} {:?} {} {} {:?}", x.name, x.kind, x.default, x.help, x.source, known);
        }
    }
    std::fs::write("/tmp/reg/plain.before", plain).unwrap();
}
