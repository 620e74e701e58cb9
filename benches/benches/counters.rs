//! Token counters on five kinds of text, in bytes per second.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ctxbench_benches::Material;
use ctxbench_core::tokens::{Encoding, bytes_div4_up, count_uncached, utf16_div4_round};

const BYTES: usize = 16_384;

type Counter = (&'static str, fn(&str) -> u64);

const COUNTERS: [Counter; 3] = [
    ("bytes-div-4", bytes_div4_up),
    ("utf16-div-4", utf16_div4_round),
    ("o200k", |text| count_uncached(text, Encoding::O200k)),
];

fn counters(c: &mut Criterion) {
    for (name, count) in COUNTERS {
        let mut group = c.benchmark_group(name);
        for material in Material::ALL {
            let text = material.text(BYTES, 1);
            group.throughput(Throughput::Bytes(text.len() as u64));
            group.bench_with_input(
                BenchmarkId::from_parameter(format!("{material:?}")),
                &text,
                |b, text| b.iter(|| count(black_box(text))),
            );
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(500))
        .nresamples(2_000);
    targets = counters
}
criterion_main!(benches);
