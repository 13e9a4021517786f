# bash completion for carpool, made by `carpool completion bash`.
_carpool() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      top|pools|connections|explain|advice|what-if|leaks|threads|warm-up|pause|resume|drain|reconnect|reload|quit|webhook|completion|man) command=${COMP_WORDS[i]}; break ;;
    esac
  done
  COMPREPLY=()
  case $before in
    --token-file|--config|--certificate|--key|--injection) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --admin|--size|--listen) return ;;
  esac
  case $command:$word in
    :-*) COMPREPLY=($(compgen -W '--admin --token-file --config --json --size --dry-run --once --listen --certificate --key --injection --check --print-config --print-default-config --print-schema --health --demo --version --help' -- "$word")) ;;
    *:-*) COMPREPLY=($(compgen -W '--admin --token-file --config --json --size --dry-run --once --listen --certificate --key --injection' -- "$word")) ;;
    :*) COMPREPLY=($(compgen -W 'top pools connections explain advice what-if leaks threads warm-up pause resume drain reconnect reload quit webhook completion man' -- "$word")) ;;
    completion:*) COMPREPLY=($(compgen -W 'bash zsh fish' -- "$word")) ;;
    man:*) COMPREPLY=($(compgen -W 'carpool carpool.toml' -- "$word")) ;;
  esac
}
complete -F _carpool carpool
