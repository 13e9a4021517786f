// Unit tests of the command line and its replies.
#include "proxy/config/options.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "config_helpers.h"

namespace carpool::proxy::config {
namespace {

namespace fs = std::filesystem;

std::variant<Options, std::string> parse(std::vector<const char*> words) {
  words.insert(words.begin(), "carpool");
  return parse_options(static_cast<int>(words.size()), words.data());
}

Options parsed(const std::vector<const char*>& words) {
  const auto result = parse(words);
  const auto* options = std::get_if<Options>(&result);
  EXPECT_NE(options, nullptr) << *std::get_if<std::string>(&result);
  return options == nullptr ? Options{} : *options;
}

std::string refused(const std::vector<const char*>& words) {
  const auto result = parse(words);
  const auto* wrong = std::get_if<std::string>(&result);
  EXPECT_NE(wrong, nullptr);
  return wrong == nullptr ? "" : *wrong;
}

TEST(Options, RunWithoutACommand) {
  EXPECT_EQ(parsed({}).command, Command::run);
  EXPECT_EQ(parsed({"--config", "a.toml"}).config, "a.toml");
  EXPECT_EQ(parsed({"--config=a=b.toml"}).config, "a=b.toml");
}

TEST(Options, KnowEveryCommand) {
  EXPECT_EQ(parsed({"--check"}).command, Command::check);
  EXPECT_EQ(parsed({"--print-config"}).command, Command::print_config);
  EXPECT_EQ(parsed({"--print-default-config"}).command, Command::print_default_config);
  EXPECT_EQ(parsed({"--print-schema"}).command, Command::print_schema);
  EXPECT_EQ(parsed({"--health", "--config", "x"}).command, Command::health);
  EXPECT_EQ(parsed({"--config", "x", "--demo"}).command, Command::demo);
  EXPECT_EQ(parsed({"--version"}).command, Command::version);
  EXPECT_EQ(parsed({"-h"}).command, Command::help);
  EXPECT_EQ(parsed({"--check", "--check"}).command, Command::check);
}

TEST(Options, NameTheNearestFlag) {
  EXPECT_EQ(refused({"--chek"}), "`--chek` is not known; did you mean `--check`?");
  EXPECT_EQ(refused({"--conf"}), "`--conf` is not known; did you mean `--config`?");
  EXPECT_EQ(refused({"--frobnicate"}), "`--frobnicate` is not known; see carpool --help");
  EXPECT_EQ(refused({"pool"}), "`pool` is not known; see carpool --help");
  EXPECT_EQ(refused({""}), "`` is not known; see carpool --help");
}

TEST(Options, RefuseWhatContradictsItself) {
  EXPECT_EQ(refused({"--check", "--demo"}), "`--check` and `--demo` cannot be combined");
  EXPECT_EQ(refused({"--config"}), "--config needs a file");
  EXPECT_EQ(refused({"--config="}), "--config needs a file");
  EXPECT_EQ(refused({"--config", "a", "--config", "b"}), "--config is given twice");
}

class RunCommand : public ::testing::Test {
 protected:
  RunCommand() : before_(fs::current_path()) {
    std::string pattern = fs::temp_directory_path() / "carpool-options-XXXXXX";
    directory_ = mkdtemp(pattern.data());
    fs::current_path(directory_);
  }
  ~RunCommand() override {
    fs::current_path(before_);
    fs::remove_all(directory_);
  }
  int ask(Command command, const std::string& config = "") {
    out_.str("");
    err_.str("");
    return run_command({command, config}, no_env(), out_, err_).value_or(-1);
  }
  fs::path before_, directory_;
  std::ostringstream out_, err_;
};

TEST_F(RunCommand, IsOkForAGoodFile) {
  std::ofstream("good.toml") << "workers = 2\n";
  EXPECT_EQ(ask(Command::check, "good.toml"), 0);
  EXPECT_EQ(out_.str(), "ok\n");
  EXPECT_EQ(err_.str(), "");
}

TEST_F(RunCommand, IsEveryErrorForABadOne) {
  std::ofstream("bad.toml") << "worker = 2\nshutdown_grace = 5\n";
  for (const Command command : {Command::check, Command::print_config}) {
    EXPECT_EQ(ask(command, "bad.toml"), 1);
    EXPECT_EQ(out_.str(), "");
    EXPECT_NE(err_.str().find("bad.toml:1:1: worker: "), std::string::npos);
    EXPECT_NE(err_.str().find("bad.toml:2:18: shutdown_grace: "), std::string::npos);
  }
  EXPECT_EQ(ask(Command::check, "missing.toml"), 1);
  EXPECT_NE(err_.str().find("missing.toml:1:1: file: "), std::string::npos);
}

TEST(AReading, NamesTheInstanceUnlessTheErrorsMayHideItsAddress) {
  const auto names = [](const char* toml) {
    const Reading reading = read_text(toml, "a.toml", no_env());
    EXPECT_FALSE(reading) << toml;
    return names_instance(reading);
  };
  EXPECT_TRUE(names("[pool]\nsise = 3\n"));
  EXPECT_TRUE(names("workers = \"many\"\n"));
  EXPECT_TRUE(names("[[origin]]\nurl = 3\n"));
  EXPECT_FALSE(names("[admn]\naddress = \":9902\"\n")) << "a misspelled [admin]";
  EXPECT_FALSE(names("[pool]\nsise = 3\n[admin]\naddress = \":9901\"\n"));
  EXPECT_FALSE(names("[metrics]\naddress = 3\n"));
  EXPECT_FALSE(names("admin = 3\n"));
  EXPECT_FALSE(names("[pool\n"));
  EXPECT_FALSE(names_instance(read_file("missing.toml", no_env())));
}

TEST_F(RunCommand, TakesTheFileOfItsOwnNameInTheWorkingDirectory) {
  std::ofstream("config.toml") << "workers = 3\n";
  std::ofstream("carpool.toml") << "workers = 4\n";
  EXPECT_EQ(find_config({}), "carpool.toml");
  EXPECT_EQ(ask(Command::print_config), 0);
  EXPECT_NE(out_.str().find("workers = 4\n"), std::string::npos);
  EXPECT_EQ(err_.str(), "");
}

TEST_F(RunCommand, SaysThatItTakesAFileOfACommonName) {
  std::ofstream("config.toml") << "workers = 3\n";
  EXPECT_EQ(find_config({}), "config.toml");
  EXPECT_EQ(ask(Command::print_config), 0);
  EXPECT_NE(out_.str().find("workers = 3\n"), std::string::npos);
  EXPECT_EQ(err_.str(),
            "warning: config.toml:1:1: file: is read from the working directory, where other programs use the same "
            "name, expected carpool.toml or --config\n");
  std::ofstream("config.toml") << "workers = 3\nbaseURL = 1\n";
  EXPECT_EQ(ask(Command::check), 1) << "partly carpool's: its errors are told";
  std::ofstream("config.toml") << "[pool\n";
  EXPECT_EQ(ask(Command::check), 1);
}

TEST_F(RunCommand, LeavesTheFileOfAnotherProgramAlone) {
  std::ofstream("config.toml") << "baseURL = \"https://example.org/\"\n[params]\nworkers = 3\n";
  EXPECT_NE(find_config({}), "config.toml");
  EXPECT_EQ(ask(Command::check), 0);
  EXPECT_EQ(err_.str(),
            "warning: config.toml:1:1: file: is not read, because none of its keys is carpool's, expected carpool.toml "
            "or --config\n");
  EXPECT_EQ(ask(Command::check, "config.toml"), 1) << "unless it is named";
}

TEST_F(RunCommand, PrintsWhatNeedsNoFile) {
  EXPECT_EQ(ask(Command::print_schema), 0);
  EXPECT_EQ(ask(Command::print_default_config), 0);
}

TEST_F(RunCommand, LeavesTheRestToTheProgram) {
  for (const Command command : {Command::run, Command::demo, Command::health, Command::help})
    EXPECT_EQ(ask(command), -1);
}

}  // namespace
}  // namespace carpool::proxy::config
