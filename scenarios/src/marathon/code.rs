//! TypeScript, SQL and OpenAPI files of the shop, made from the domain model.

use super::domain::{Entity, camel, kebab, pascal, words};
use super::rng::Rng;
use super::template::{Fragments, Vars};
use std::fmt::Write;

pub struct CodeWriter {
    fragments: Fragments,
}

impl CodeWriter {
    pub fn new() -> Self {
        Self { fragments: Fragments::load() }
    }

    pub fn model(&self, entity: &Entity) -> String {
        let vars = entity_vars(entity);
        let name = pascal(&entity.name);
        let mut out = self.fragments.fill("model.head", &vars);
        let mut body = format!("\nexport interface {name} {{\n  id: {name}Id;\n");
        let mut schema = format!("\nexport const New{name}Schema = z.object({{\n");
        for parent in &entity.parents {
            let _ = writeln!(body, "  {}Id: string;", camel(parent));
            let _ = writeln!(schema, "  {}Id: z.string().min(5),", camel(parent));
        }
        for field in &entity.fields {
            let _ = writeln!(body, "  {}: {};", camel(&field.name), ts_type(&field.kind));
            let _ = writeln!(schema, "  {}: {},", camel(&field.name), zod_type(&field.kind));
        }
        let _ = writeln!(
            body,
            "  state: {name}State;\n  version: number;\n  createdAt: Date;\n  updatedAt: Date;\n}}"
        );
        let _ = writeln!(
            schema,
            "}}).strict();\n\nexport type New{name} = z.infer<typeof New{name}Schema>;"
        );
        out += &body;
        out += &schema;
        out += &self.fragments.fill("model.tail", &vars);
        finish(out)
    }

    pub fn repository(&self, entity: &Entity) -> String {
        let mut vars = entity_vars(entity);
        let mut rng = Rng::named(&format!("repo {}", entity.name));
        let mut out = self.fragments.fill("repo.head", &vars);
        for parent in &entity.parents {
            vars.set("P", pascal(parent));
            vars.set("p", camel(parent));
            vars.set("pc", parent.as_str());
            numbers(&mut vars, &mut rng);
            out += &self.fragments.fill("repo.parent.1", &vars);
            out += &self.fragments.fill("repo.parent.2", &vars);
        }
        for field in &entity.fields {
            let kind = match field.kind.as_str() {
                "date" => "ts",
                "bool" => continue,
                other => other,
            };
            field_vars(&mut vars, &field.name);
            numbers(&mut vars, &mut rng);
            out += &self.fragments.fill(&format!("repo.field.{kind}"), &vars);
        }
        for (index, verb) in entity.verbs.iter().enumerate() {
            verb_vars(&mut vars, entity, verb, index, &mut rng);
            out += &self.fragments.fill("repo.verb", &vars);
        }
        out += &self.fragments.fill("repo.journal", &vars);
        finish(out + &self.fragments.fill("repo.tail", &vars))
    }

    pub fn service(&self, entity: &Entity) -> String {
        let mut vars = entity_vars(entity);
        let mut rng = Rng::named(&format!("service {}", entity.name));
        let mut out = self.fragments.fill("service.head", &vars);
        out += &self.fragments.fill("service.class", &vars);
        for (index, verb) in entity.verbs.iter().enumerate() {
            verb_vars(&mut vars, entity, verb, index, &mut rng);
            out += &self.fragments.fill(&format!("service.verb.{}", shape(entity, index)), &vars);
            out += &self.fragments.fill(&format!("service.more.{}", 1 + index % 3), &vars);
        }
        for field in &entity.fields {
            let kind = match field.kind.as_str() {
                "date" => "ts",
                "text" | "int" | "ts" => field.kind.as_str(),
                _ => continue,
            };
            field_vars(&mut vars, &field.name);
            numbers(&mut vars, &mut rng);
            out += &self.fragments.fill(&format!("service.field.{kind}"), &vars);
        }
        for parent in &entity.parents {
            vars.set("P", pascal(parent));
            vars.set("p", camel(parent));
            out += &self.fragments.fill("service.parent", &vars);
        }
        for field in entity.fields.iter().filter(|field| field.kind == "cents") {
            field_vars(&mut vars, &field.name);
            out += &self.fragments.fill("service.cents", &vars);
        }
        finish(out.trim_end().to_owned() + "\n}\n")
    }

    pub fn controller(&self, entity: &Entity) -> String {
        let mut vars = entity_vars(entity);
        let mut rng = Rng::named(&format!("controller {}", entity.name));
        vars.set("n", rng.range(20, 90).to_string());
        let mut out = self.fragments.fill("controller.head", &vars);
        out += "const CreateBody = z.object({\n";
        for field in &entity.fields {
            let _ = writeln!(out, "  {}: {},", camel(&field.name), zod_type(&field.kind));
        }
        out += "});\n\n";
        out += &self.fragments.fill("controller.mid", &vars);
        for (index, verb) in entity.verbs.iter().enumerate() {
            verb_vars(&mut vars, entity, verb, index, &mut rng);
            let kind = match shape(entity, index) {
                3 => 3,
                2 => 2,
                _ => 1,
            };
            out += &self.fragments.fill(&format!("controller.verb.{kind}"), &vars);
            out += &self.fragments.fill(&format!("controller.more.{}", 1 + index % 3), &vars);
        }
        for field in entity.fields.iter().filter(|field| field.kind == "text") {
            field_vars(&mut vars, &field.name);
            numbers(&mut vars, &mut rng);
            out += &self.fragments.fill("controller.field", &vars);
        }
        finish(out + &self.fragments.fill("controller.tail", &vars))
    }

    pub fn unit_test(&self, entity: &Entity) -> String {
        self.suite(entity, "test", &|index| match shape(entity, index) {
            3 => 3,
            1 | 5 => 1,
            _ => 2,
        })
    }

    /// Tests over http for several entities, as an agent writes them in one file each.
    pub fn http_test(&self, entity: &Entity) -> String {
        self.suite(entity, "itest", &|index| 1 + index % 2)
    }

    fn suite(&self, entity: &Entity, family: &str, kind: &dyn Fn(usize) -> usize) -> String {
        let mut vars = entity_vars(entity);
        let mut rng = Rng::named(&format!("{family} {}", entity.name));
        numbers(&mut vars, &mut rng);
        let mut out = self.fragments.fill(&format!("{family}.head"), &vars);
        for (index, verb) in entity.verbs.iter().enumerate() {
            verb_vars(&mut vars, entity, verb, index, &mut rng);
            out += &self.fragments.fill(&format!("{family}.verb.{}", kind(index)), &vars);
            out += &self.fragments.fill(&format!("{family}.more.{}", 1 + index % 3), &vars);
        }
        out = out.trim_end().to_owned() + "\n";
        finish(out + &self.fragments.fill(&format!("{family}.tail"), &vars))
    }

    pub fn openapi(&self, entity: &Entity) -> String {
        let mut vars = entity_vars(entity);
        let mut rng = Rng::named(&format!("openapi {}", entity.name));
        numbers(&mut vars, &mut rng);
        let mut out = self.fragments.fill("openapi.head", &vars).trim_end().to_owned() + "\n";
        for (index, verb) in entity.verbs.iter().enumerate() {
            verb_vars(&mut vars, entity, verb, index, &mut rng);
            for part in ["openapi.verb", "openapi.more"] {
                out += self.fragments.fill(part, &vars).trim_end();
                out.push('\n');
            }
        }
        let name = pascal(&entity.name);
        let _ = writeln!(
            out,
            "components:\n  schemas:\n    {name}:\n      type: object\n      properties:"
        );
        for field in &entity.fields {
            let _ = writeln!(
                out,
                "        {}: {{ type: {} }}",
                camel(&field.name),
                json_type(&field.kind)
            );
        }
        out
    }

    pub fn migration(&self, entity: &Entity) -> String {
        self.fragments.fill("migration", &entity_vars(entity)).trim_end().to_owned() + "\n"
    }
}

/// Which of the six method shapes a verb has; service, controller and test agree on it.
fn shape(entity: &Entity, index: usize) -> usize {
    1 + (Rng::named(&entity.name).range(0, 6) as usize + index * 5) % 6
}

fn numbers(vars: &mut Vars, rng: &mut Rng) {
    vars.set("n", rng.range(11, 29).to_string());
    vars.set("n2", (rng.range(4, 20) * 25).to_string());
    vars.set("hash", rng.id(12));
}

fn field_vars(vars: &mut Vars, name: &str) {
    vars.set("F", pascal(name));
    vars.set("f", camel(name));
    vars.set("c", name);
    vars.set("c_kebab", kebab(name));
}

fn verb_vars(vars: &mut Vars, entity: &Entity, verb: &str, index: usize, rng: &mut Rng) {
    let target = &entity.states[(index + 1) % entity.states.len()];
    let doc = words(verb);
    vars.set("v", camel(verb));
    vars.set("V", pascal(verb));
    vars.set("v_snake", verb);
    vars.set("v_kebab", kebab(verb));
    vars.set("Vdoc", doc[..1].to_ascii_uppercase() + &doc[1..]);
    vars.set("s", target.as_str());
    vars.set("role", rng.pick(&["staff", "admin", "support", "warehouse"]));
    numbers(vars, rng);
}

fn entity_vars(entity: &Entity) -> Vars {
    let mut vars = Vars::default();
    let columns: Vec<(String, &str)> = entity
        .parents
        .iter()
        .map(|parent| (format!("{parent}_id"), "text"))
        .chain(entity.fields.iter().map(|field| (field.name.clone(), field.kind.as_str())))
        .collect();
    let each = |line: &dyn Fn(&str, &str) -> String| -> String {
        columns.iter().map(|(name, kind)| line(name, kind)).collect()
    };
    let quoted = |quote: &str| -> String {
        let items: Vec<String> =
            entity.states.iter().map(|s| format!("{quote}{s}{quote}")).collect();
        items.join(", ")
    };
    let joined = |item: &dyn Fn(usize, &str) -> String| -> String {
        let items: Vec<String> =
            columns.iter().enumerate().map(|(i, (name, _))| item(i, name)).collect();
        items.join(", ")
    };
    vars.set("E", pascal(&entity.name));
    vars.set("E_UP", entity.name.to_ascii_uppercase());
    vars.set("e", camel(&entity.name));
    vars.set("e_kebab", kebab(&entity.name));
    vars.set("es", camel(&entity.table));
    vars.set("t", entity.table.as_str());
    vars.set("kebabs", entity.folder());
    vars.set("dir", entity.folder());
    vars.set("label", words(&entity.name));
    vars.set("prefix", entity.prefix());
    vars.set("s0", entity.states[0].as_str());
    vars.set("slast", entity.states[entity.states.len() - 1].as_str());
    vars.set("states_q", quoted("'"));
    vars.set("states_sq", quoted("'"));
    vars.set("states_plain", quoted(""));
    vars.set("allowed", allowed(entity));
    vars.set("columns", each(&|name, _| format!("  {name},\n")));
    vars.set("rowfields", each(&|name, kind| format!("  {name}: {};\n", row_type(kind))));
    vars.set("mapfields", each(&|name, _| format!("    {}: row.{name},\n", camel(name))));
    vars.set("presentfields", each(&|name, _| format!("    {0}: row.{0},\n", camel(name))));
    vars.set("insertcols", joined(&|_, name| name.to_owned()));
    vars.set("placeholders", joined(&|i, _| format!("${}", i + 1)));
    vars.set("insertvals", joined(&|_, name| format!("input.{}", camel(name))));
    vars.set("fieldnames_q", joined(&|_, name| format!("'{}'", camel(name))));
    vars.set("sqlcols", each(&|name, kind| format!("  {name} {},\n", sql_type(kind))));
    vars.set(
        "sqlidx",
        entity
            .parents
            .iter()
            .map(|p| format!("CREATE INDEX {0}_{p}_idx ON {0} ({p}_id);\n", entity.table))
            .collect::<String>(),
    );
    vars.set("reltables", entity.parents.iter().map(|p| format!("'{p}s', ")).collect::<String>());
    vars
}

/// Forward moves by one or two states; the last state is final.
fn allowed(entity: &Entity) -> String {
    let count = entity.states.len();
    let mut out = String::new();
    for (index, state) in entity.states.iter().enumerate() {
        let next: Vec<String> = entity.states[index + 1..count.min(index + 3)]
            .iter()
            .map(|s| format!("'{s}'"))
            .collect();
        let _ = writeln!(out, "  {state}: [{}],", next.join(", "));
    }
    out
}

fn finish(text: String) -> String {
    text.trim_end().to_owned() + "\n"
}

fn ts_type(kind: &str) -> &'static str {
    match kind {
        "cents" | "int" => "number",
        "ts" => "Date | null",
        "bool" => "boolean",
        _ => "string",
    }
}

fn zod_type(kind: &str) -> &'static str {
    match kind {
        "cents" => "z.number().int().nonnegative()",
        "int" => "z.number().int()",
        "ts" => "z.coerce.date().nullable().default(null)",
        "bool" => "z.boolean().default(false)",
        "date" => "z.string().date()",
        _ => "z.string().trim().max(240)",
    }
}

fn row_type(kind: &str) -> &'static str {
    match kind {
        "cents" | "int" => "number",
        "ts" => "Date | null",
        "bool" => "boolean",
        _ => "string",
    }
}

fn sql_type(kind: &str) -> &'static str {
    match kind {
        "cents" => "bigint NOT NULL DEFAULT 0",
        "int" => "integer NOT NULL DEFAULT 0",
        "ts" => "timestamptz",
        "bool" => "boolean NOT NULL DEFAULT false",
        "date" => "date",
        _ => "text NOT NULL",
    }
}

fn json_type(kind: &str) -> &'static str {
    match kind {
        "cents" | "int" => "integer",
        "bool" => "boolean",
        "ts" => "string, format: date-time",
        "date" => "string, format: date",
        _ => "string",
    }
}
