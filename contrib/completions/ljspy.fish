# SPDX-License-Identifier: MIT
# fish completion for ljspy.
#
# Commands and options are those that `ljspy --help` tells of; what follows an
# option goes by the name that its argument has there.

function __ljspy_program
    set -l words (commandline -opc)
    string replace -r -- '^~' $HOME $words[1]
end

# The command on the command line, if there is one yet.
function __ljspy_command
    set -l words (commandline -opc)
    set -q words[2]; and echo $words[2]
end

function __ljspy_help
    set -l program (__ljspy_program)
    type -q $program; and $program $argv --help 2>/dev/null
end

function __ljspy_commands
    __ljspy_help | sed -n '/^Commands/,/^$/s/^  \([a-z]\{1,\}\) \{1,\}\(.*\)/\1\t\2/p'
end

# Names, tab, what they do.
function __ljspy_options
    __ljspy_help (__ljspy_command) | sed -n '
        s/^  \(-[A-Za-z]\), \(--[a-z-]*\)\( [^ ]\{1,\}\)\{0,1\}  *\(.*\)/\1\t\4\n\2\t\4/p
        s/^      \(--[a-z-]*\)\( [^ ]\{1,\}\)\{0,1\}  *\(.*\)/\1\t\3/p'
end

# What the argument of the last option on the command line is called, if it has one.
function __ljspy_argument
    set -l words (commandline -opc)
    set -l option $words[-1]
    # --format=svg
    set -l current (commandline -ct)
    string match -q -- '--*=*' $current; and set option (string replace -r -- '=.*' '' $current)
    string match -qr -- '^--?[a-zA-Z][a-z-]*$' $option; or return 1
    __ljspy_help (__ljspy_command) | sed -n "/^  \(-[A-Za-z], \|    \)\{0,1\}"$option"[ ,]/{
        s/^  \(-[A-Za-z], \|    \)--[a-z-]* \([^ ]\{1,\}\)  .*/\2/p
        q
    }" | string match -r '.+'
end

function __ljspy_formats
    __ljspy_help (__ljspy_command) | tr -s '\n ' ' ' | sed -n 's/.*--format FORMAT \(\([^ ]*, \)*[^ ]*\).*/\1/p' | tr -d , | string match -ra '\S+'
end

# Processes that run LuaJIT, tab, their names: `ljspy info` lists several, or shows the only one.
function __ljspy_pids
    set -l program (__ljspy_program)
    type -q $program; and $program info 2>&1 | sed -n '
        s/^ljspy:   -p \([0-9]*\) .*CPU *\(.*\)/\1\t\2/p
        s/^Process \([0-9]*\)[^:]*: \(.*\)/\1\t\2/p'
end

function __ljspy_complete_argument
    set -l current (commandline -ct)
    set -l given (string match -r -- '^--[a-z-]+=' $current)
    switch (__ljspy_argument)
        case '*FILE*' RECORDING
            __fish_complete_path (string replace -r -- '^--[a-z-]+=' '' $current) | string replace -r -- '^' "$given"
        case FORMAT
            string replace -r -- '^' "$given" (__ljspy_formats)
        case WHICH
            string replace -r -- '^' "$given" fold all none
        case WEIGHT
            string replace -r -- '^' "$given" cpu wall off-cpu alloc alloc-objects
        case CLOCK
            string replace -r -- '^' "$given" cpu wall
        case WHAT
            set -l what path module type coroutine
            string match -q -- (__ljspy_command)'*' heap
            or set -a what pid tid comm state phase gc-phase route host status upstream
            string replace -r -- '^' "$given" $what
        case MEASURE
            string replace -r -- '^' "$given" own retained count
        case 'STATE*'
            set -l others (string match -r -- '^(?:--[a-z-]+=)?(?:\w+,)*' $current)
            string replace -r -- '^' "$others" running runnable blocked idle uninterruptible parked \
                none interpreted compiled c gc recording optimising assembling exit unknown
        case 'PID*'
            set -l others (string match -r -- '^(?:--[a-z-]+=)?(?:\d+,)*' $current)
            __ljspy_pids | string replace -r -- '^' "$others"
    end
end

# Behind "--" is the command that is started.
function __ljspy_is_started
    contains -- -- (commandline -opc)
end

function __ljspy_complete_started
    __fish_complete_subcommand --fcs-skip=(contains -i -- -- (commandline -opc))
end

function __ljspy_wants_command
    test (count (commandline -opc)) = 1
end

# ljspy help COMMAND
function __ljspy_wants_help
    set -l words (commandline -opc)
    test (count $words) = 2; and test $words[2] = help
end

complete -c ljspy -f
complete -c ljspy -n '__ljspy_wants_command; or __ljspy_wants_help' -a '(__ljspy_commands)'
complete -c ljspy -n __ljspy_wants_command -a help -d 'show the options of a command'
complete -c ljspy -n __ljspy_wants_command -l help -s h -d 'show the commands'
complete -c ljspy -n __ljspy_wants_command -l version -s V -d 'show the version'
complete -c ljspy -n __ljspy_is_started -a '(__ljspy_complete_started)'
complete -c ljspy -n 'not __ljspy_is_started; and not __ljspy_wants_command; and __ljspy_argument >/dev/null' -a '(__ljspy_complete_argument)'
complete -c ljspy -n 'not __ljspy_is_started; and not __ljspy_wants_command; and not __ljspy_argument >/dev/null; and string match -q -- "-*" (commandline -ct)' -a '(__ljspy_options)'
complete -c ljspy -n 'not __ljspy_is_started; and not __ljspy_wants_command; and not __ljspy_argument >/dev/null; and __ljspy_help (__ljspy_command) | grep -Eq "^Usage: .* (RECORDING|BEFORE)"' -F
