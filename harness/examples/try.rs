use ctxbench_harness::{mock::Transport, replay::{replay, Options}, summarise::Summariser};
fn main() {
    let t = std::env::args().nth(2).as_deref() == Some("http");
    let rt = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for sc in ctxbench_scenarios::load(&std::env::args().nth(1).unwrap()).unwrap() {
        let model = ctxbench_core::provider::find("claude-sonnet-4-6").unwrap();
        let mut runs = vec![];
        for spec in ctxbench_strategies::Spec::defaults() {
            let o = Options { transport: if t { Transport::Http } else { Transport::Direct }, summariser: Summariser::Extractive, seed: 1, rereads: true, trace: false, window: None };
            let start = std::time::Instant::now();
            let r = rt.block_on(replay(&sc, &spec, model, &o));
            eprintln!("{} {} {:?} {:?} {:?}", sc.id, spec.label(), r.record.status, r.record.error, start.elapsed());
            for i in r.record.integrity.iter().take(3) { eprintln!("   {i:?}"); }
            runs.push(r.record);
        }
        ctxbench_harness::replay::fill_savings(&mut runs);
        let res = ctxbench_core::record::Results { version: 1, runs, ..Default::default() };
        println!("{}", ctxbench_reports::table(&res, ctxbench_reports::TableOptions { color: false, width: 160 }));
    }
}
