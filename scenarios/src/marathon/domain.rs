//! The entities of the shop, read from a compact table in the data folder.

const TABLE: &str = include_str!("../../data/login-bug-marathon/domain.txt");

pub struct Field {
    pub name: String,
    pub kind: String,
}

pub struct Entity {
    pub name: String,
    pub table: String,
    pub parents: Vec<String>,
    pub fields: Vec<Field>,
    pub states: Vec<String>,
    pub verbs: Vec<String>,
}

impl Entity {
    pub fn folder(&self) -> String {
        kebab(&self.table)
    }

    /// Path of the file of one layer, as the imports in the generated code name it.
    pub fn path(&self, layer: &str) -> String {
        format!("src/{}/{}.{layer}.ts", self.folder(), kebab(&self.name))
    }

    pub fn unit_test_path(&self) -> String {
        format!("tests/{}/{}.service.test.ts", self.folder(), kebab(&self.name))
    }

    /// Three letters that start every id of this entity.
    pub fn prefix(&self) -> String {
        self.name.chars().filter(|c| *c != '_').take(3).collect()
    }
}

pub fn entities() -> Vec<Entity> {
    TABLE.lines().filter(|line| !line.is_empty()).map(parse).collect()
}

fn parse(line: &str) -> Entity {
    let parts: Vec<&str> = line.split('|').collect();
    let list = |text: &str| -> Vec<String> {
        text.split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect()
    };
    let fields = parts[3]
        .split_whitespace()
        .map(|item| {
            let (name, kind) = item.split_once(':').expect("a field has a type");
            Field { name: name.to_owned(), kind: kind.to_owned() }
        })
        .collect();
    Entity {
        name: parts[0].to_owned(),
        table: parts[1].to_owned(),
        parents: list(parts[2]),
        fields,
        states: list(parts[4]),
        verbs: list(parts[5]),
    }
}

pub fn camel(snake: &str) -> String {
    let mut up = false;
    let mut out = String::new();
    for c in snake.chars() {
        if c == '_' {
            up = true;
        } else if up {
            out.push(c.to_ascii_uppercase());
            up = false;
        } else {
            out.push(c);
        }
    }
    out
}

pub fn pascal(snake: &str) -> String {
    let camel = camel(snake);
    camel[..1].to_ascii_uppercase() + &camel[1..]
}

pub fn kebab(snake: &str) -> String {
    snake.replace('_', "-")
}

pub fn words(snake: &str) -> String {
    snake.replace('_', " ")
}
