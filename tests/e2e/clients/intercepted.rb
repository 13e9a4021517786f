# Ruby's net/http with http_proxy and SSL_CERT_FILE of the environment: intercepted URL
require "net/http"
url = ARGV[0]
say = ->(answer) { puts "#{answer.code} HTTP/1 #{answer.body}" }
5.times { say.call(Net::HTTP.get_response(URI(url + "/hello"))) }
say.call(Net::HTTP.post(URI(url + "/sink"), "x" * 100_000))
