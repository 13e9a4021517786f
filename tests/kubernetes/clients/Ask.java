// An application that nobody changed, with Java's own client: Ask URL TIMES
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

public class Ask {
  public static void main(String[] arguments) throws Exception {
    for (int n = 0; n < Integer.parseInt(arguments[1]); n++) {
      HttpResponse<String> answer = HttpClient.newHttpClient().send(
          HttpRequest.newBuilder(URI.create(arguments[0])).build(), HttpResponse.BodyHandlers.ofString());
      System.out.println(answer.statusCode() + " " + answer.headers().firstValue("Via").orElse(""));
    }
  }
}
