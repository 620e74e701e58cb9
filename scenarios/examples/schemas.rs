fn main() {
    println!("{}", serde_json::to_string_pretty(&ctxbench_core::schema::session_line()).unwrap());
}
