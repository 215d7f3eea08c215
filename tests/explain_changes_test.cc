// What-ifs: --set and --shuffle.
#include "explain/changes.h"

#include <gtest/gtest.h>

#include "explain/example.h"

namespace attn::explain {
namespace {

using reference::Matrix;
using reference::Problem;

std::string refusal(const std::string& change) {
  Problem problem = worked_example();
  const std::string message = apply_changes({change}, &problem).message();
  EXPECT_NE(message, "") << change;
  EXPECT_TRUE(problem.replaced.empty());
  return message;
}

TEST(Set, NamesRowsByTokenOrByNumber) {
  Problem problem = worked_example();
  ASSERT_TRUE(apply_changes({"k[4471]=2,0", "v[2]=-1.5,1e3"}, &problem).ok());
  ASSERT_EQ(problem.replaced.size(), 2U);
  EXPECT_EQ(problem.replaced[0].matrix, 'k');
  EXPECT_EQ(problem.replaced[0].row, 1);
  EXPECT_EQ(problem.replaced[1].row, 2);
  EXPECT_EQ(problem.replaced[1].values, (std::vector<double>{-1.5, 1000}));
  problem.tokens = {"1", "[CLS]", "x"};
  ASSERT_TRUE(apply_changes({"q[1]=0,0"}, &problem).ok());
  EXPECT_EQ(problem.replaced[2].row, 0) << "the token called 1 comes before row 1";
  ASSERT_TRUE(apply_changes({"q[[CLS]]=0,0"}, &problem).ok());
  EXPECT_EQ(problem.replaced[3].row, 1);
}

TEST(Set, ChangesInputsInPlace) {
  Problem problem = worked_example();
  ASSERT_TRUE(apply_changes({"x[order]=0,0,0,7"}, &problem).ok());
  ASSERT_TRUE(apply_changes({"wk[3]=5,6"}, &problem).ok());
  EXPECT_EQ(problem.x[0], (std::vector<double>{0, 0, 0, 7}));
  EXPECT_EQ(problem.wk[3], (std::vector<double>{5, 6}));
}

TEST(Set, RefusesWhatDoesNotFit) {
  for (const char* change :
       {"", "k", "k[0]", "k[0]2,0", "k[0]=", "k[0]=1,,2", "k[0]=1,x", "k[0]=inf,0", "k[-1]=1,2", "k[0.5]=1,2",
        "kk[0]=1,2", "[0]=1,2", "x[0]=1", "x[9]=1,2,3,4", "wq[order]=1,2", "k[99999999999999999999]=1,2"}) {
    refusal(change);
  }
  EXPECT_NE(refusal("k[foo]=1,2").find("\"foo\" is no token"), std::string::npos);
  Problem twice = worked_example();
  twice.tokens[2] = "order";
  EXPECT_NE(apply_changes({"k[order]=1,2"}, &twice).message().find("again in row 2"), std::string::npos);
  Problem given;
  given.tokens = {"a"};
  given.q = given.k = given.v = {{1}};
  EXPECT_NE(apply_changes({"x[a]=1"}, &given).message().find("has no x"), std::string::npos);
}

TEST(Set, SaysWhatARowHas) {
  EXPECT_NE(refusal("k[4471]=2").find("--set k[4471]=2: 1 number, but a row of k has 2"), std::string::npos);
  EXPECT_NE(refusal("x[0]=1,2,3").find("3 numbers, but a row of x has 4"), std::string::npos);
  EXPECT_NE(refusal("v[3]=1,2").find("row 3 is not there; v has 3 rows, counted from 0"), std::string::npos);
  EXPECT_NE(refusal("wq[4]=1,2").find("wq has 4 rows"), std::string::npos);
}

TEST(Set, SetsARowOnce) {
  for (const std::vector<std::string>& changes :
       {std::vector<std::string>{"k[4471]=2,0", "k[1]=3,0"}, {"wq[0]=2,0", "v[0]=1,1", "wq[0]=2,0"}}) {
    Problem problem = worked_example();
    const std::string message = apply_changes(changes, &problem).message();
    EXPECT_NE(message.find("--set " + changes.back()), std::string::npos) << message;
    EXPECT_NE(message.find("by --set " + changes.front()), std::string::npos) << message;
    EXPECT_TRUE(problem.replaced.empty());
    EXPECT_EQ(problem.wq, worked_example().wq);
  }
  Problem problem = worked_example();
  EXPECT_TRUE(apply_changes({"k[0]=1,1", "v[0]=1,1", "k[1]=1,1"}, &problem).ok());
}

TEST(Shuffle, MovesTokensRowsAndChanges) {
  Problem problem = worked_example();
  ASSERT_TRUE(apply_changes({"k[4471]=2,0"}, &problem).ok());
  ASSERT_TRUE(shuffle({2, 0, 1}, &problem).ok());
  EXPECT_EQ(problem.tokens, (std::vector<std::string>{"shipped", "order", "4471"}));
  EXPECT_EQ(problem.x, (Matrix{{1, 1, 0, 0}, {1, 0, 1, 0}, {0, 1, 0, 1}}));
  EXPECT_EQ(problem.replaced[0].row, 2);
}

TEST(Shuffle, NamesEachRowOnce) {
  for (const std::vector<std::int64_t>& order :
       std::vector<std::vector<std::int64_t>>{{}, {0, 1}, {0, 1, 1}, {1, 2, 3}, {0, 1, 2, 3}}) {
    Problem problem = worked_example();
    EXPECT_FALSE(shuffle(order, &problem).ok());
    EXPECT_EQ(problem.tokens, worked_example().tokens);
  }
  Problem problem = worked_example();
  EXPECT_TRUE(shuffle({0, 1, 1}, &problem).message().starts_with("--shuffle 0,1,1: row 1 comes twice"));
  EXPECT_TRUE(shuffle({1, 2, 3}, &problem).message().starts_with("--shuffle 1,2,3: row 3 is not there"));
  EXPECT_TRUE(shuffle({0, 1}, &problem).message().starts_with("--shuffle 0,1: row 2 is missing"));
}

}  // namespace
}  // namespace attn::explain
