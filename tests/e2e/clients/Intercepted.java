// Java's HttpClient through CONNECT, with the trust store of JAVA_TOOL_OPTIONS: Intercepted URL h1|h2 PROXY
import java.net.InetSocketAddress;
import java.net.ProxySelector;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

public class Intercepted {
  static HttpClient client(String[] args) {
    URI proxy = URI.create(args[2]);
    HttpClient.Version version = args[1].equals("h2") ? HttpClient.Version.HTTP_2 : HttpClient.Version.HTTP_1_1;
    return HttpClient.newBuilder().version(version).proxy(ProxySelector.of(new InetSocketAddress(proxy.getHost(), proxy.getPort()))).build();
  }

  static void ask(HttpClient client, HttpRequest request) throws Exception {
    HttpResponse<String> answer = client.send(request, HttpResponse.BodyHandlers.ofString());
    System.out.println(answer.statusCode() + (answer.version() == HttpClient.Version.HTTP_2 ? " HTTP/2 " : " HTTP/1 ") + answer.body());
  }

  public static void main(String[] args) throws Exception {
    for (int i = 0; i < 5; i++) ask(client(args), HttpRequest.newBuilder(URI.create(args[0] + "/hello")).build());
    HttpRequest.BodyPublisher body = HttpRequest.BodyPublishers.ofByteArray(new byte[100000]);
    ask(client(args), HttpRequest.newBuilder(URI.create(args[0] + "/sink")).POST(body).build());
    System.exit(0);
  }
}
