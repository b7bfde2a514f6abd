//! Arbitrary bytes for the importer with the name of the binary.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rb_wire::model::Run;
use rb_wire::transcripts::IMPORTERS;

fuzz_target!(|bytes: &[u8]| {
    let importer = IMPORTERS.iter().find(|importer| importer.id == env!("CARGO_BIN_NAME"));
    let Some(importer) = importer else { panic!("no importer has the name of this target") };
    let (runs, diagnostics) = (importer.parse)(bytes);
    for diagnostic in diagnostics {
        assert!(diagnostic.line > 0 && !diagnostic.to_string().is_empty());
    }
    for run in runs {
        for step in &run.steps {
            let _ = step.step();
        }
        assert_eq!(Run::into_owned(run.clone()), run);
    }
});
