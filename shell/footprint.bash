# bash completion for footprint. Written by shell/generate.py (make shell): change the command instead.

_footprint() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb= kind=file options= values= i
    # bash makes words of `--format`, `=` and `json`.
    if [[ $cur == = ]]; then
        cur=
    elif [[ $prev == = ]]; then
        prev=${COMP_WORDS[COMP_CWORD-2]}
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} != -* ]]; then
            verb=${COMP_WORDS[i]}
            break
        fi
    done
    for ((i++; i < COMP_CWORD; i++)); do
        # What stands behind is a command of its own.
        if [[ ${COMP_WORDS[i]} == -- ]]; then
            verb=--
            [[ $i -eq $((COMP_CWORD - 1)) ]] && kind=command
            break
        fi
    done

    case $verb in
        --) ;;
        '')
            kind=none
            options='--help --version'
            values='audit run watch whatif symbols libraries duplicates heap diff check trend fleet capture scan explain doctor'
            ;;
        audit)
            options='-n --count --memory --reserve --limit --model --workers --all --findings --heap --heap-at --alloc-fn --binary --by --top --fail-on --pid --root --page-size --prefix-map --components --tree --name --cgroup --unit --container --debug-dir --debuginfod --no-debug-files --reproducible --html -o --output --format --table --json --color -q --quiet -v --verbose --strict --no-command --limits --drop-privileges -h --help'
            case $prev in
                -n | --count | --memory | --reserve | --limit | --workers | --heap-at | --alloc-fn | --top | --fail-on | --pid | --page-size | --prefix-map | --tree | --name | --cgroup | --unit | --container | --table | --limits) kind=none ;;
                --model) kind=none values='exec fork threads' ;;
                --heap | --binary | --components | --html | -o | --output) kind=file ;;
                --by) kind=none values='owner kind section symbol file dir component mapping' ;;
                --root | --debug-dir) kind=folder ;;
                --format) kind=none values='text json markdown csv tsv jsonl sarif junit github gitlab openmetrics gitlab-metrics folded speedscope pprof html' ;;
                --color) kind=none values='auto always never' ;;
            esac
            ;;
        run)
            options='--when --when-output --timeout --starts --follow --massif --massif-out --massif-timeout --start-cost --expect-exit --allow -n --count --per --by --top --html -o --output --format --table --json --color -q --quiet -v --verbose --strict --no-command --limits -h --help'
            case $prev in
                --when | --when-output | --timeout | --starts | --massif-timeout | --expect-exit | --allow | -n | --count | --top | --table | --limits) kind=none ;;
                --massif-out | --html | -o | --output) kind=file ;;
                --per) kind=none values='second minute hour day' ;;
                --by) kind=none values='owner kind section symbol file dir component mapping' ;;
                --format) kind=none values='text json markdown csv tsv jsonl openmetrics gitlab-metrics folded speedscope pprof html' ;;
                --color) kind=none values='auto always never' ;;
            esac
            ;;
        watch)
            options='--every --for --keep --replay --listen --fail-on-growth --accept --heap --heap-at --alloc-fn --binary --top --tree --name --cgroup --unit --container --html -o --output --format --table --json --color -q --quiet -v --verbose --strict --no-command --limits -h --help'
            case $prev in
                --every | --for | --keep | --listen | --fail-on-growth | --accept | --heap-at | --alloc-fn | --top | --tree | --name | --cgroup | --unit | --container | --table | --limits) kind=none ;;
                --replay | --heap | --binary | --html | -o | --output) kind=file ;;
                --format) kind=none values='text json markdown csv tsv jsonl openmetrics gitlab-metrics perfetto html' ;;
                --color) kind=none values='auto always never' ;;
            esac
            ;;
        whatif)
            options='--drop --with --when --when-output --timeout --starts --start-cost --force --expect-exit --allow -n --count --per --top --html -o --output --format --table --json --color -q --quiet -v --verbose --strict --no-command --limits -h --help'
            case $prev in
                --drop | --with | --when | --when-output | --timeout | --starts | --expect-exit | --allow | -n | --count | --top | --table | --limits) kind=none ;;
                --per) kind=none values='second minute hour day' ;;
                --html | -o | --output) kind=file ;;
                --format) kind=none values='text json markdown csv tsv jsonl html' ;;
                --color) kind=none values='auto always never' ;;
            esac
            ;;
        symbols)
            options='--map --by --kind --local --global --min-size --name --source --sort --top --prefix-map --components --debug-dir --debuginfod --no-debug-files --html -o --output --format --table --json --color -q --quiet -v --verbose --strict --no-command --limits --drop-privileges -h --help'
            case $prev in
                --map | --components | --html | -o | --output) kind=file ;;
                --by) kind=none values='symbol file dir component section' ;;
                --kind) kind=none values='data bss relro tls' ;;
                --min-size | --name | --top | --prefix-map | --table | --limits) kind=none ;;
                --sort) kind=none values='size address name' ;;
                --debug-dir) kind=folder ;;
                --format) kind=none values='text json markdown csv tsv jsonl openmetrics gitlab-metrics folded speedscope pprof html' ;;
                --color) kind=none values='auto always never' ;;
            esac
            ;;
        libraries)
            options='--tree --depth --why -n --count --per --root --page-size --sort --top --fail-on --html -o --output --format --table --json --color -q --quiet -v --verbose --strict --no-command --limits --drop-privileges -h --help'
            case $prev in
                --depth | --why | -n | --count | --page-size | --top | --fail-on | --table | --limits) kind=none ;;
                --per) kind=none values='second minute hour day' ;;
                --root) kind=folder ;;
                --sort) kind=none values='load retained floor start users name' ;;
                --html | -o | --output) kind=file ;;
                --format) kind=none values='text json markdown csv tsv jsonl sarif junit github gitlab openmetrics gitlab-metrics dot html' ;;
                --color) kind=none values='auto always never' ;;
            esac
            ;;
        duplicates)
            options='-n --count --top --fail-on --debug-dir --debuginfod --no-debug-files --html -o --output --format --table --json --color -q --quiet -v --verbose --strict --no-command --limits --drop-privileges -h --help'
            case $prev in
                -n | --count | --top | --fail-on | --table | --limits) kind=none ;;
                --debug-dir) kind=folder ;;
                --html | -o | --output) kind=file ;;
                --format) kind=none values='text json markdown csv tsv jsonl sarif junit github gitlab openmetrics gitlab-metrics html' ;;
                --color) kind=none values='auto always never' ;;
            esac
            ;;
        heap)
            options='--at --by --sort --threshold --alloc-fn --allocators --binary --root --top --fail-on --debug-dir --debuginfod --no-debug-files --html -o --output --format --table --json --color -q --quiet -v --verbose --strict --no-command --limits --drop-privileges -h --help'
            case $prev in
                --at | --threshold | --alloc-fn | --top | --fail-on | --table | --limits) kind=none ;;
                --by) kind=none values='owner function tree callers growth' ;;
                --sort) kind=none values='allocated blocks temporary lifetime read written leaked' ;;
                --binary | --html | -o | --output) kind=file ;;
                --root | --debug-dir) kind=folder ;;
                --format) kind=none values='text json markdown csv tsv jsonl sarif junit github gitlab openmetrics gitlab-metrics folded speedscope pprof html' ;;
                --color) kind=none values='auto always never' ;;
            esac
            ;;
        diff)
            options='-n --count --top --binary --pid --root --map --tree --name --cgroup --unit --container --debug-dir --debuginfod --no-debug-files --html -o --output --format --table --json --color -q --quiet -v --verbose --strict --no-command --limits --drop-privileges -h --help'
            case $prev in
                -n | --count | --top | --pid | --tree | --name | --cgroup | --unit | --container | --table | --limits) kind=none ;;
                --binary | --map | --html | -o | --output) kind=file ;;
                --root | --debug-dir) kind=folder ;;
                --format) kind=none values='text json markdown csv tsv jsonl sarif junit github gitlab openmetrics gitlab-metrics html' ;;
                --color) kind=none values='auto always never' ;;
            esac
            ;;
        check)
            options='--config --update-baseline --propose --max-increase --baseline --init --folder --ci --when --when-output --accept --pid --root --map --tree --name --cgroup --unit --container --debug-dir --debuginfod --no-debug-files -o --output --format --html --table --json --color -q --quiet --strict --no-command --limits --drop-privileges -h --help'
            case $prev in
                --config | --baseline | --map | -o | --output | --html) kind=file ;;
                --max-increase | --ci | --when | --when-output | --accept | --pid | --tree | --name | --cgroup | --unit | --container | --table | --limits) kind=none ;;
                --folder | --root | --debug-dir) kind=folder ;;
                --format) kind=none values='text json markdown csv tsv jsonl sarif junit github gitlab openmetrics gitlab-metrics html' ;;
                --color) kind=none values='auto always never' ;;
            esac
            ;;
        trend)
            options='--history --add --version --commit --time --program --figure --owner --last --pid --tree --name --cgroup --unit --container --html -o --output --format --table --json --color -q --quiet --strict --no-command --limits --drop-privileges -h --help'
            case $prev in
                --history | --html | -o | --output) kind=file ;;
                --version | --commit | --time | --program | --figure | --owner | --last | --pid | --tree | --name | --cgroup | --unit | --container | --table | --limits) kind=none ;;
                --format) kind=none values='text json markdown csv tsv jsonl html' ;;
                --color) kind=none values='auto always never' ;;
            esac
            ;;
        fleet)
            options='--query --sql --day --from --to --program --keep -n --count --top --html -o --output --format --table --json --color -q --quiet -v --verbose --strict --no-command --limits --drop-privileges -h --help'
            case $prev in
                --query | --day | --from | --to | --program | --keep | -n | --count | --top | --table | --limits) kind=none ;;
                --html | -o | --output) kind=file ;;
                --format) kind=none values='text json markdown csv tsv jsonl openmetrics gitlab-metrics html' ;;
                --color) kind=none values='auto always never' ;;
            esac
            ;;
        capture)
            options='-o --output --script --freeze --together --longest-stop --anonymous --findings -q --quiet --strict --no-command --limits --drop-privileges -h --help'
            case $prev in
                -o | --output) kind=file ;;
                --longest-stop | --limits) kind=none ;;
            esac
            ;;
        scan)
            options='-o --output --processes --root --host --command-lines --anonymous --scheduler --workers --format --table --json --color -q --quiet --strict --no-command --limits -h --help'
            case $prev in
                -o | --output | --host | --scheduler | --workers | --table | --limits) kind=none ;;
                --root) kind=folder ;;
                --format) kind=none values='text json markdown csv tsv jsonl' ;;
                --color) kind=none values='auto always never' ;;
            esac
            ;;
        explain)
            options='-o --output --format --table --json --color --no-command --limits --drop-privileges -h --help'
            case $prev in
                -o | --output) kind=file ;;
                --format) kind=none values='text json markdown csv tsv jsonl' ;;
                --table | --limits) kind=none ;;
                --color) kind=none values='auto always never' ;;
            esac
            ;;
        doctor)
            options='--calibrate -o --output --format --table --json --color -q --quiet --no-command --limits -h --help'
            kind=none
            case $prev in
                -o | --output) kind=file ;;
                --format) kind=none values='text json markdown csv tsv jsonl' ;;
                --table | --limits) kind=none ;;
                --color) kind=none values='auto always never' ;;
            esac
            ;;
    esac

    COMPREPLY=()
    if [[ -n $options && $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
        return
    fi
    case $kind in
        none) [[ -z $values ]] || mapfile -t COMPREPLY < <(compgen -W "$values" -- "$cur") ;;
        command) mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
        *)
            compopt -o filenames 2>/dev/null
            if [[ $kind == folder ]]; then
                mapfile -t COMPREPLY < <(compgen -d -- "$cur")
            else
                mapfile -t COMPREPLY < <(compgen -f -- "$cur")
            fi
            ;;
    esac
}

complete -F _footprint footprint
