//! Encoding and decoding of requests in Anthropic's wire format, in bytes of the body per second.

use std::sync::Arc;
use std::time::Duration;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ctxbench_benches::{blocks, model};
use ctxbench_core::block::Block;
use ctxbench_core::breakpoints::default_breakpoints;
use ctxbench_core::request::Request;
use ctxbench_provider::wire;

/// Numbers of turns in the request; a turn is about 3.7 kB.
const TURNS: [usize; 3] = [8, 64, 512];

fn request(blocks: Vec<Arc<Block>>) -> Request {
    let breakpoints = default_breakpoints(&blocks);
    let model = Arc::new(model().clone());
    Request { max_tokens: Some(8_192), breakpoints, ..Request::new(model, blocks) }
}

fn wire(c: &mut Criterion) {
    let wire = wire::for_model(model());
    let mut group = c.benchmark_group("anthropic");
    for turns in TURNS {
        let seen = request(blocks(0, turns, 1));
        let body = wire.encode(&seen).body;
        let size = format!("{} kB", body.len().div_ceil(1_000));
        group.throughput(Throughput::Bytes(body.len() as u64));
        // Blocks cache their text as JSON: a block is escaped in the first request that contains
        // it.
        group.bench_function(BenchmarkId::new("encode new blocks", &size), |b| {
            b.iter_batched_ref(
                || request(blocks(0, turns, 1)),
                |r| wire.encode(r),
                BatchSize::LargeInput,
            );
        });
        group.bench_function(BenchmarkId::new("encode known blocks", &size), |b| {
            b.iter(|| wire.encode(&seen))
        });
        group.bench_function(BenchmarkId::new("decode", &size), |b| {
            b.iter(|| wire.decode("", &body).expect("encoded replies can be decoded"));
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(500))
        .nresamples(2_000);
    targets = wire
}
criterion_main!(benches);
