# bash completion for carpool, made by `carpool completion bash`.
_carpool() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
  case $before in
    --config|--token-file|--certificate|--key|--injection) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --admin|--size|--listen) return ;;
    completion) COMPREPLY=($(compgen -W 'bash zsh fish' -- "$word")); return ;;
    man) COMPREPLY=($(compgen -W 'carpool carpool.toml' -- "$word")); return ;;
  esac
  case $word in
    -*) COMPREPLY=($(compgen -W '--config --check --print-config --print-default-config --print-schema --health --demo --version --help --admin --token-file --json --size --dry-run --once --listen --certificate --key --injection' -- "$word")) ;;
    *) COMPREPLY=($(compgen -W 'top pools connections explain advice what-if leaks threads warm-up pause resume drain reconnect reload quit webhook completion man' -- "$word")) ;;
  esac
}
complete -F _carpool carpool
