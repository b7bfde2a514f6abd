//! One importer, the one that the binary is named after, with anything.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rb_wire::model::Run;
use rb_wire::transcripts::IMPORTERS;

fuzz_target!(|bytes: &[u8]| {
    let importer = IMPORTERS.iter().find(|importer| importer.id == env!("CARGO_BIN_NAME"));
    let Some(importer) = importer else { panic!("no importer is called like this target") };
    let (runs, complaints) = (importer.parse)(bytes);
    for complaint in complaints {
        assert!(complaint.line > 0 && !complaint.to_string().is_empty());
    }
    for run in runs {
        for step in &run.steps {
            let _ = step.step();
        }
        assert_eq!(Run::into_owned(run.clone()), run);
    }
});
