#!/bin/bash -eu
# Build a fuzzer of each target, with its seeds, as OSS-Fuzz and ClusterFuzzLite expect them: in $OUT.
cd "$SRC/footprint"
pip3 install . hypothesis pytest # the writers of the tests make the seeds
seeds=$(mktemp -d)
python3 -m fuzz.seeds "$seeds"
for folder in "$seeds"/*; do
    target=$(basename "$folder")
    fuzzer=fuzz_$target.py
    printf 'import sys\n\nfrom fuzz.run import main\n\nmain([sys.argv[0], "%s", *sys.argv[1:]])\n' "$target" >"$fuzzer"
    compile_python_fuzzer "$fuzzer" --add-data fuzz/files:fuzz/files --collect-submodules footprint
    (cd "$folder" && zip -q -r "$OUT/fuzz_${target}_seed_corpus.zip" .)
done
