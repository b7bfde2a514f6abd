//! Arbitrary bytes as an OTLP export, in protobuf and JSON; accepted spans become runs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rb_wire::otlp::{self, Encoding};
use rb_wire::transcripts::IMPORTERS;

fuzz_target!(|bytes: &[u8]| {
    let Some(importer) = IMPORTERS.iter().find(|importer| importer.id == "otlp") else {
        panic!("there is no importer for spans");
    };
    for encoding in [Encoding::Protobuf, Encoding::Json] {
        let Ok(read) = otlp::spans(bytes, encoding) else { continue };
        let document = otlp::document(read.spans.iter().map(|span| span.json.as_str()));
        // Re-reading the converted spans gives the same result.
        let again = otlp::spans(document.as_bytes(), Encoding::Json);
        assert_eq!(again.map(|again| again.spans), Ok(read.spans));
        for run in (importer.parse)(document.as_bytes()).0 {
            assert!(run.steps.iter().all(|step| step.step().thought == step.thought));
        }
    }
});
