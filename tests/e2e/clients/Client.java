// Java's HttpClient through a proxy (plain; for https it would ask for CONNECT): Client BASE TLSBASE PROXY
import java.net.InetSocketAddress;
import java.net.ProxySelector;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;

public class Client {
  static HttpClient client;

  static HttpRequest.Builder to(String target) {
    return HttpRequest.newBuilder(URI.create(target));
  }

  static byte[] body(HttpResponse<byte[]> answer) {
    if (answer.statusCode() != 200) throw new IllegalStateException(answer.statusCode() + " " + new String(answer.body()));
    return answer.body();
  }

  static byte[] ask(HttpRequest request) throws Exception {
    return body(client.send(request, HttpResponse.BodyHandlers.ofByteArray()));
  }

  public static void main(String[] args) throws Exception {
    URI proxy = URI.create(args[2]);
    client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1)
        .proxy(ProxySelector.of(new InetSocketAddress(proxy.getHost(), proxy.getPort()))).build();
    for (int i = 0; i < 20; i++) ask(to(args[0] + "/hello").build());
    List<CompletableFuture<byte[]>> all = new ArrayList<>();
    for (int i = 0; i < 160; i++) {
      all.add(client.sendAsync(to(args[0] + "/hello").build(), HttpResponse.BodyHandlers.ofByteArray()).thenApply(Client::body));
    }
    for (CompletableFuture<byte[]> one : all) one.get();
    System.out.println("big " + ask(to(args[0] + "/big").build()).length);
    System.out.print(new String(ask(to(args[0] + "/sink").POST(HttpRequest.BodyPublishers.ofByteArray(new byte[1 << 20])).build())));
  }
}
